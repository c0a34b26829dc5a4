// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState
import DaemonLifecycleTesting
import Foundation
import TestSupport
import XCTest

@testable import pollerd

/// The daemon under signals, with time in the test's hand.
final class PollerTests: XCTestCase {
  private var directory: Folder!

  override func setUpWithError() throws { directory = try Folder() }
  override func tearDown() { directory = nil }

  private let second = PollSource(path: "/second")

  // MARK: Polling

  func testPollsAtOnceAndThenEveryInterval() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    await daemon.mock.advance(by: .milliseconds(999))
    XCTAssertEqual(daemon.console.polls, ["poll 1 value 1"])
    await daemon.mock.advance(by: .milliseconds(1))
    try await daemon.console.line("poll 2")
    XCTAssertEqual(daemon.console.polls, ["poll 1 value 1", "poll 2 value 2"])
    XCTAssertTrue(daemon.mock.calls.contains { $0.hasPrefix("addObserver") })
    try await daemon.terminate()
  }

  func testAFailedPollIsCountedAndKeepsTheLastValue() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    daemon.source.behaviour = .fail
    try await daemon.poll(2)
    try await daemon.terminate()
    XCTAssertEqual(daemon.console.polls.last, "poll 2 failed: the source is dry")
    XCTAssertEqual(try daemon.store.load(), PollState(count: 2, lastValue: "value 1"))
  }

  func testWaitingForRoomIsNoIllness() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    daemon.console.hasRoom = false
    await daemon.mock.advance(by: .seconds(1))
    try await daemon.console.pollIsRefused()
    await daemon.mock.advance(by: .seconds(100))
    let report = try await daemon.mock.send(.checkHealth)
    XCTAssertTrue(report.problems.isEmpty, "\(report)")
    daemon.console.hasRoom = true
    try await daemon.terminate()
  }

  func testAShorterIntervalIsNoIllness() async throws {
    let config = try directory.write("interval=3600\nsource=/first\n", to: "pollerd.conf")
    let daemon = try await TestDaemon.polling(in: directory, config: config)
    await daemon.mock.advance(by: .seconds(1800))
    try directory.write("interval=1\nsource=/first\n", to: "pollerd.conf")
    daemon.source.behaviour = .hang
    try await daemon.mock.send(.sighup)
    let report = try await daemon.mock.send(.checkHealth)
    XCTAssertTrue(report.problems.isEmpty, "\(report)")
    try await daemon.terminate()
  }

  // MARK: Pause and resume

  func testNoPollIsPrintedWhilePaused() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    let report = try await daemon.mock.send(.sigusr1)
    XCTAssertTrue(report.problems.isEmpty, "\(report)")
    await daemon.mock.advance(by: .seconds(60))
    XCTAssertEqual(
      Array(daemon.console.lines.suffix(2)), ["poll 1 value 1", "saved: count 1"])
    XCTAssertEqual(daemon.source.asked.count, 1)

    try await daemon.mock.send(.sigusr2)
    try await daemon.console.line("poll 2")
    XCTAssertEqual(
      Array(daemon.console.lines.suffix(2)), ["saved: count 1", "poll 2 value 2"])
    try await daemon.terminate()
  }

  func testAPollThatComesLateIsDropped() async throws {
    let daemon = try await TestDaemon(in: directory, .ignoreCancellation)
    await daemon.source.isAsked()
    daemon.mock.inject(.sigusr1)
    await daemon.mock.advance(by: .seconds(11))  // the hook timeout, and 1 s to end
    let report = try await daemon.mock.waitUntilSettled()
    XCTAssertEqual(report.problems.count, 1, "\(report)")
    XCTAssertEqual(daemon.mock.state, .background)

    daemon.source.behaviour = .answer
    daemon.source.release()
    daemon.mock.inject(.sigusr2)
    try await daemon.console.line("poll 1 value 2")
    try await daemon.terminate()
    XCTAssertEqual(daemon.console.polls, ["poll 1 value 2"])
  }

  // MARK: Reload

  func testAReloadTakesEffectInTheMiddleOfALongWait() async throws {
    let config = try directory.write("interval = 3600\nsource = /first", to: "config")
    let daemon = try await TestDaemon.polling(in: directory, config: config)
    try directory.write("interval = 0.5\nsource = /second", to: "config")
    let report = try await daemon.mock.send(.sighup)
    XCTAssertTrue(report.problems.isEmpty, "\(report)")
    XCTAssertEqual(
      Array(daemon.console.lines.suffix(2)),
      ["saved: count 1", "settings: interval 0.5 seconds, source /second"])
    try await daemon.poll(2, after: .milliseconds(500))
    try await daemon.poll(3, after: .milliseconds(500))
    XCTAssertEqual(daemon.source.asked, [PollSource(path: "/first"), second, second])
    try await daemon.terminate()
  }

  func testABadReloadKeepsTheOldSettings() async throws {
    let config = try directory.write("source = /second", to: "config")
    let daemon = try await TestDaemon.polling(in: directory, config: config)
    try directory.write("source = /first\nintervall = 5", to: "config")
    let report = try await daemon.mock.send(.sighup)
    let sentence =
      "\(config), line 2: there is no setting \"intervall\", only interval and source."
    XCTAssertEqual(report.problems.count, 1, "\(report)")
    XCTAssertTrue("\(report)".contains(sentence), "\(report)")
    // The lifecycle logs it; nothing is printed of a reload that did not happen.
    XCTAssertEqual(daemon.console.lines.last, "saved: count 1")
    try await daemon.poll(2)
    XCTAssertEqual(daemon.source.asked, [second, second])
    try await daemon.terminate()
    XCTAssertEqual(daemon.mock.exitResult?.exitStatus, 0)
  }

  func testWithoutAConfigurationFileAReloadSaysSo() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    let report = try await daemon.mock.send(.sighup)
    XCTAssertTrue(report.problems.isEmpty, "\(report)")
    XCTAssertEqual(
      Array(daemon.console.lines.suffix(2)),
      ["saved: count 1", "reload: nothing to reload without --config"])
    try await daemon.terminate()
  }

  // MARK: What is printed

  /// What the lifecycle does not log; its causes are in the log.
  func testWhatItPrints() async throws {
    let daemon = try await TestDaemon.polling(in: directory)
    try await daemon.terminate()
    XCTAssertEqual(
      daemon.console.lines, ["started, pid \(getpid())", "poll 1 value 1", "saved: count 1"])
  }
}
