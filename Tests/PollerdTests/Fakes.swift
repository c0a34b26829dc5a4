// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleTesting
import Foundation
import Synchronization
import TestSupport

@testable import pollerd

/// A console that keeps the lines, and lets a test wait for one.
final class CapturedLines: LineOutput {
  private struct State {
    var lines: [String] = []
    var hasRoom = true
    /// Polls that found no room.
    var refused = 0
  }
  private let state = Mutex(State())

  var lines: [String] { state.withLock { $0.lines } }
  var polls: [String] { lines.filter { $0.hasPrefix("poll ") } }

  var hasRoom: Bool {
    get { state.withLock { $0.hasRoom } }
    set { state.withLock { $0.hasRoom = newValue } }
  }

  func printIfRoom(_ line: String) -> Bool {
    state.withLock { state in
      if state.hasRoom { state.lines.append(line) } else { state.refused += 1 }
      return state.hasRoom
    }
  }

  func print(_ line: String) { state.withLock { $0.lines.append(line) } }

  /// Returns when there is a line that begins like this.
  func line(_ beginning: String) async throws {
    do {
      try await eventually { lines.contains { $0.hasPrefix(beginning) } }
    } catch { throw TestFailure("no line \(beginning) in \(lines)") }
  }

  func pollIsRefused() async throws {
    try await eventually("a poll is refused") { state.withLock { $0.refused > 0 } }
  }
}

/// A source that says `value 1`, `value 2`, …, or what it is told to do.
final class FakeSource: Sendable {
  enum Behaviour: Sendable {
    case answer
    case fail
    /// Wait, until the poll is cancelled.
    case hang
    /// Wait for `release()`, and ignore being cancelled.
    case ignoreCancellation
  }
  struct Failure: Error, CustomStringConvertible { let description = "the source is dry" }

  private let state = Mutex((behaviour: Behaviour.answer, asked: [PollSource]()))
  private let released = AsyncStream.makeStream(of: Void.self)
  private let asking = AsyncStream.makeStream(of: Void.self)

  var behaviour: Behaviour {
    get { state.withLock { $0.behaviour } }
    set { state.withLock { $0.behaviour = newValue } }
  }
  var asked: [PollSource] { state.withLock { $0.asked } }

  func release() { released.continuation.yield() }

  /// Returns when a poll has begun to read since the last call.
  func isAsked() async { for await _ in asking.stream { return } }

  func read(_ source: PollSource) async throws -> String {
    let (behaviour, number) = state.withLock { state in
      state.asked.append(source)
      return (state.behaviour, state.asked.count)
    }
    asking.continuation.yield()
    switch behaviour {
    case .answer: break
    case .fail: throw Failure()
    case .hang: try await Task.sleep(for: .seconds(100_000))
    case .ignoreCancellation:
      // A task of its own is not cancelled with the poll.
      await Task { for await _ in released.stream { return } }.value
    }
    return "value \(number)"
  }
}

/// A poller at work, with everything around it faked but the files.
struct TestDaemon {
  let mock = MockLifecycleSubject()
  let console = CapturedLines()
  let source = FakeSource()
  let store: PollStore
  let poller: Poller

  init(
    in directory: Folder, config: String? = nil,
    overrides: PartialSettings = PartialSettings(), _ behaviour: FakeSource.Behaviour = .answer
  ) async throws {
    store = try PollStore(directory: directory.path + "/state")
    let configuration = Configuration(file: config, overrides: overrides)
    let (mock, source) = (mock, source)
    source.behaviour = behaviour
    let poller = Poller(
      lifecycle: mock, state: try store.load() ?? PollState(), store: store,
      settings: try configuration.load(),
      configuration: configuration, console: console, read: { try await source.read($0) })
    self.poller = poller
    mock.addForeground(name: "polling") { try await poller.poll() }
    try await mock.waitUntilSettled()
  }

  /// One that has polled once.
  static func polling(
    in directory: Folder, config: String? = nil,
    overrides: PartialSettings = PartialSettings()
  ) async throws -> Self {
    let daemon = try await Self(in: directory, config: config, overrides: overrides)
    try await daemon.console.line("poll 1")
    return daemon
  }

  /// Polls once more, after its interval.
  func poll(_ number: Int, after interval: Duration = .seconds(1)) async throws {
    await mock.advance(by: interval)
    try await console.line("poll \(number)")
  }

  /// Ends it as systemd does, and checks that it leaves nothing behind.
  @discardableResult func terminate() async throws -> LifecycleReport {
    let report = try await mock.send(.sigterm)
    try mock.checkNothingPending()
    return report
  }
}
