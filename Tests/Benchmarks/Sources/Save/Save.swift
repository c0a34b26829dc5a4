// SPDX-License-Identifier: Apache-2.0
import CBench
import DaemonLifecycleState
import Glibc

/// StateStore.save: `Save DIRECTORY BYTES COUNT`. Says the time of each save, in nanoseconds.
@main struct Save {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let size = Int(arguments[2]), let repetitions = Int(arguments[3])
    else { exit(64) }
    let store = try StateStore(directory: arguments[1])
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
    _ = try store.load()
    for repetition in 0...repetitions {
      let began = bench_now()
      try store.save(bytes)
      // The first is to warm up.
      if repetition > 0 { say("time \(bench_now() - began)\n") }
    }
  }

  private static func say(_ line: String) {
    var line = line
    line.withUTF8 { _ = write(Int32(BENCH_CHANNEL), $0.baseAddress, $0.count) }
  }
}
