// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import FoundationEssentials
import Given
import Glibc
import Logging

@testable import Recipes

/// The guide's log prints what the guide shows: a pause that could not save, and a stop. Its lines of JSON are JSON.
@main struct LifecycleInLog {
  static let guide =
    "Sources/DaemonLifecycle/DaemonLifecycle.docc/UsingWithSwiftPackages.md"

  struct Lines: TextOutputStream, Sendable {
    func write(_ line: String) {
      // Where it runs, and the timeline.
      if line.contains("Running on ") || line.dropLast().contains("\n") { return }
      Notes.add(LifecycleInLog.comparable(line.replacing("[Recipes]", with: "[mydaemon]")))
      if line.contains("Entered the background") { kill(getpid(), SIGTERM) }
    }
  }

  /// The line without its time and its numbers.
  static func comparable(_ line: some StringProtocol) -> String {
    String(line.drop { $0 != " " }.filter { !$0.isNumber && $0 != "." && !$0.isNewline })
  }

  actor Orders: SaveObserver {
    private var isDiskFull = true

    func shouldSaveState(_ notification: ShouldSaveState) throws {
      defer { isDiskFull = false }
      if isDiskFull { throw Full() }
    }
  }
  struct Full: Error, CustomStringConvertible { let description = "no space left on /var/lib/shop" }

  static func main() throws {
    let shown = try String(contentsOfFile: guide, encoding: .utf8).split(separator: "\n")
    Notes.expectAtExit(shown.filter { $0.hasPrefix("2026-") }.map(comparable))
    logger = Logger(label: "mydaemon") { StreamLogHandler(label: $0, stream: Lines()) }
    work = { lifecycle in
      lifecycle.addObserver(Orders())
      kill(getpid(), SIGUSR1)
      try await Task.sleep(for: .seconds(3600))
    }
    try lifecycleInLog()
  }
}
