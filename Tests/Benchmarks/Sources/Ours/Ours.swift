// SPDX-License-Identifier: Apache-2.0
import CBench
import DaemonLifecycle
import Glibc
import Stamping

/// Our package under an async `main`: the first argument says what it does.
@main struct Ours {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    let lifecycle = LifecycleSubject(configuration: LifecycleConfiguration(logging: .problems))
    let observers = observers(arguments, lifecycle.clock)
    let phase = arguments.first?.hasPrefix("sleep") == true ? LifecyclePhase.together : .standard
    for observer in observers { lifecycle.addObserver(observer, phase: phase) }
    // No body, which could not end while the pool is blocked.
    let token = lifecycle.observe(DidFinishLaunching.self) { _ in
      if arguments.first == "blocked" { blockPool() }
      bench_ready()
    }
    let result = try await lifecycle.run()
    withExtendedLifetime((observers, token)) {}
    exit(result.exitStatus)
  }

  private static func observers(
    _ arguments: [String], _ clock: LifecycleClock
  ) -> [any LifecycleObserver] {
    switch arguments.first {
    case "actor", "blocked": [StampingActor()]
    case "write" where arguments.count > 1:
      (1...3).map { Writer(directory: arguments[1], number: $0) }
    case "sleep-async": (0..<100).map { _ in Sleeper(clock: clock) }
    case "sleep-blocking": (0..<100).map { _ in Blocker() }
    default: exit(64)
    }
  }

  /// More tasks than Swift's pool has threads, none of which ends.
  private static func blockPool() {
    for _ in 0..<64 { Task.detached { while true { pause() } } }
    usleep(50_000)
  }
}

extension LifecyclePhase {
  static let together = LifecyclePhase(order: 1, isConcurrent: true)
}

/// Writes a file at the end.
actor Writer: SaveObserver {
  private let directory: String
  private let number: Int32

  init(directory: String, number: Int) {
    self.directory = directory
    self.number = Int32(number)
  }

  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    if bench_write_file(directory, number) != 0 { throw WriteFailed() }
  }
  private struct WriteFailed: Error {}
}

/// Takes 50 ms to end, as one who waits for others.
actor Sleeper: TerminationObserver {
  private let clock: LifecycleClock
  init(clock: LifecycleClock) { self.clock = clock }
  func willTerminate(_ notification: WillTerminate) async throws {
    try await clock.sleep(for: .milliseconds(50))
  }
}

/// Takes 50 ms to end, and a thread for that.
final class Blocker: TerminationObserver {
  func willTerminate(_ notification: WillTerminate) async { usleep(50_000) }
}
