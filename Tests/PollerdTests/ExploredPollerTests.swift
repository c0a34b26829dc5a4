// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleExploring
import DaemonLifecycleState
import DaemonLifecycleTesting
import Foundation
import TestSupport
import Testing

@testable import pollerd

@Suite struct ExploredPollerTests {
  private struct Refused: Error {}

  /// Whatever happens when, and whatever its disk, its source and its output refuse: numbers are printed once and in
  /// order, none while it is paused, what was saved last is what was printed last, and a reload has its effect.
  @Test func everyNumberIsPrintedOnceAndSaved() async throws {
    let explored = try await MockLifecycleSubject.explore(for: .seconds(2)) { run in
      let folder = try Folder()
      let store = PollStore(try StateStore(directory: folder.path)) {
        if run.shouldFail("the disk is full") { throw Refused() }
        return Array(try JSONEncoder().encode($0))
      } decode: {
        try JSONDecoder().decode(PollState.self, from: Data($1))
      }
      let console = NarrowConsole { run.shouldFail("no room") }
      let configuration = Configuration(
        file: try folder.write("interval = 2\nsource = new\n", to: "settings"),
        overrides: PartialSettings())
      // Before the poller, so that its lines surround those of each stay in the foreground.
      run.mock.addObserver(
        Scripted(
          foreground: { _ in console.print("foreground") },
          background: { _ in console.print("background") }))
      let poller = Poller(
        lifecycle: run.mock, state: PollState(), store: store, settings: Settings(),
        configuration: configuration, console: console
      ) { source in
        await Task.yield()
        if run.shouldFail("the source is dry") { throw Refused() }
        return source.path
      }
      run.mock.addForeground(name: "polling") { try await poller.poll() }
      return {
        withExtendedLifetime(folder) {}
        let lines = console.lines.lines
        let numbers = lines.filter { $0.hasPrefix("poll ") }.compactMap { line in
          Int(line.split(separator: " ")[1])
        }
        guard numbers == Array(0..<numbers.count).map({ $0 + 1 }) else {
          throw TestFailure("printed \(numbers)")
        }
        let last = lines.lastIndex { $0 == "background" || $0 == "foreground" }
        if let last, lines[last] == "background",
          lines[last...].contains(where: { $0.hasPrefix("poll ") })
        {
          throw TestFailure("polls while paused: \(lines)")
        }
        // The one that has begun before the reload may be of the former source.
        let reload = lines.firstIndex { $0.hasPrefix("settings: ") } ?? lines.endIndex
        if lines[reload...].filter({ $0.hasSuffix("/proc/loadavg") }).count > 1 {
          throw TestFailure("the reload is lost: \(lines)")
        }
        guard run.mock.exitResult?.exitStatus == 0 else { return }
        let saved = try store.load()?.count ?? 0
        if saved != numbers.count { throw TestFailure("saved \(saved) of \(numbers.count)") }
      }
    }
    print("pollerd: \(explored)")
  }
}

/// A console that may have no room for a line.
private struct NarrowConsole: LineOutput {
  let lines = CapturedLines()
  let refuses: @Sendable () -> Bool

  init(refuses: @escaping @Sendable () -> Bool) { self.refuses = refuses }

  func printIfRoom(_ line: String) -> Bool { !refuses() && lines.printIfRoom(line) }
  func print(_ line: String) { lines.print(line) }
}
