// SPDX-License-Identifier: Apache-2.0
import CBench
import Dispatch
import Glibc

/// What a Swift daemon does without a package: a Dispatch source for each signal. `actor` goes on into an
/// actor, as asynchronous code must, `main` into the main actor; `bare` does its work in the callback.
@main struct DispatchSignal {
  static let queue = DispatchQueue(label: "signals")
  static let worker = Worker()
  /// Global: what lives in a function that never returns may be released before its end.
  nonisolated(unsafe) static var sources: [any DispatchSourceSignal] = []

  static func main() {
    if CommandLine.arguments.count == 3 { writeAtTheEnd(CommandLine.arguments[2]) }
    let way = CommandLine.arguments.dropFirst().first
    sources = [SIGUSR1, SIGUSR2].map { number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { @Sendable in
        switch way {
        case "actor": Task { await worker.pause() }
        case "main": Task { @MainActor in bench_stamp() }
        default: bench_stamp()
        }
      }
      source.resume()
      return source
    }
    bench_ready()
    dispatchMain()
  }

  /// `write DIRECTORY`: three components that write a file each when SIGTERM comes.
  static func writeAtTheEnd(_ directory: String) -> Never {
    let source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: queue)
    source.setEventHandler { @Sendable in
      for component: Int32 in [3, 2, 1] where bench_write_file(directory, component) != 0 {
        exit(1)
      }
      exit(0)
    }
    source.resume()
    sources = [source]
    // A source's handler is installed on Dispatch's own thread, some time after `resume`.
    usleep(50_000)
    bench_ready()
    dispatchMain()
  }
}

actor Worker {
  func pause() async { bench_stamp() }
}
