// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import XCTest

/// Ends, in time, with the right status, whatever the hooks, the pool, Dispatch or stdout do.
final class TerminationTests: XCTestCase {
  /// The budget that the scenarios' deadlines allow, with room for a loaded machine; what blocks, blocks
  /// for 30 s and more.
  private let budget = 15.0

  private func ends(
    _ daemon: ChildProcess, _ exit: ChildProcess.Exit, file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    XCTAssertEqual(
      try daemon.wait(within: budget, file: file, line: line), exit, file: file, line: line)
  }

  // MARK: Objects that go away

  func testADeinitMayAskAndBlock() throws {
    for arguments in [[], ["blocks"]] {
      let daemon = try ChildProcess(built("ProbeDaemon"), ["leaving"] + arguments)
      try daemon.expect("started")
      daemon.send(SIGUSR1)
      for _ in 1...3 { try daemon.expect("gone: ") }
      daemon.send(SIGTERM)
      try ends(daemon, .status(0))
      XCTAssertEqual(daemon.output.filter { $0 == "saved" }.count, 2)
      XCTAssertEqual(
        Set(daemon.output.filter { $0.hasPrefix("gone: ") }),
        ["gone: observer", "gone: closure", "gone: error"])
    }
  }

  // MARK: A blocked pool

  private func blockedDaemon(_ arguments: [String]) throws -> ChildProcess {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["blocked"] + arguments)
    try daemon.expect("blocked")
    daemon.send(SIGTERM)
    return daemon
  }

  private func allSaved(_ daemon: ChildProcess) {
    for observer in ["class", "actor", "lane", "main"] {
      XCTAssertTrue(
        daemon.output.contains { $0.hasPrefix("\(observer) save") }, "\(observer) did not save")
    }
  }

  /// With Swift 6.2, whose runtime takes the caller back to the pool, the exit grace ends the daemon instead.
  private func callerWentOn(_ daemon: ChildProcess) {
    let wentOn = daemon.output.contains("exit 0")
    #if compiler(>=6.3)
      XCTAssertTrue(wentOn, "the caller did not go on, the exit grace ended it")
    #else
      XCTAssertFalse(wentOn, "the caller went on: what `run` says of Swift 6.2 is not true here")
    #endif
  }

  func testBlockedPoolAndDispatch() throws {
    for arguments in [["dispatch"], ["main", "dispatch"]] {
      let daemon = try blockedDaemon(arguments)
      try ends(daemon, .status(0))
      allSaved(daemon)
      if arguments.count == 1 { callerWentOn(daemon) }
    }
  }

  func testAnActorThatIsStuckInThePoolIsNamed() throws {
    let daemon = try blockedDaemon(["stuck"])
    try ends(daemon, .status(124))
    allSaved(daemon)
    #if compiler(>=6.3)  // The caller prints it: see `callerWentOn`.
      XCTAssertTrue(
        daemon.output.contains {
          $0.contains("StuckActor, ShouldSaveState: abandoned")
            && $0.contains(": never got its executor")
        }, daemon.output.joined(separator: "\n"))
    #endif
  }

  func testAHookThatBlocksTheMainActorIsRunning() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["blocked-main"])
    try daemon.expect("blocked")
    daemon.send(SIGTERM)
    try ends(daemon, .status(124))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("class save") })
    for hook in ["BlocksMain, DidEnterBackground", "MainObserver, ShouldSaveState"] {
      XCTAssertTrue(
        daemon.output.contains {
          $0.contains("\(hook): abandoned") && $0.contains(": did not end")
        },
        daemon.output.joined(separator: "\n"))
    }
  }

  // MARK: Blocking and hanging hooks

  func testMoreBlockingObserversThanThreadsThenAHealthyOne() throws {
    let count = LongTests.count(8, long: 24)
    let daemon = try ChildProcess(built("ProbeDaemon"), ["blockers", "\(count)"])
    daemon.send(0)
    try daemon.expect("healthy foreground")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(within: 40), .status(124))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("healthy save") })
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("healthy terminate") })
    let threads = try XCTUnwrap(
      daemon.output.first { $0.hasPrefix("threads ") }.flatMap { Int($0.dropFirst(8)) })
    // Two looks at a busy machine, where threads seem to be blocked, bring four each.
    XCTAssertLessThanOrEqual(threads, count + 2 + 8)
    XCTAssertEqual(
      daemon.output.filter { $0.contains("BlockingObserver") && $0.contains(": did not end") }
        .count,
      count)
  }

  private func hanging(_ arguments: String...) throws -> ChildProcess {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["hang"] + arguments, stderrToStdout: true)
    try daemon.expect("started")
    daemon.send(SIGTERM)
    try daemon.expect("hanging")
    return daemon
  }

  private func namesTheHangingHook(_ daemon: ChildProcess) {
    XCTAssertTrue(
      daemon.output.contains {
        $0.contains("HangingObserver, DidEnterBackground: abandoned")
          && $0.contains(": did not end")
      }, daemon.output.joined(separator: "\n"))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("saver save") })
  }

  func testAHookThatNeverEnds() throws {
    for kind in ["async", "blocking"] {
      let daemon = try hanging(kind)
      try ends(daemon, .status(124))
      namesTheHangingHook(daemon)
      // One that is suspended has no thread.
      let lines = daemon.output.filter { $0.hasPrefix("lifecycle: A hook was cancelled: thread ") }
      let place = "waits in sleep, blockThread, HangingObserver.didEnterBackground."
      XCTAssertEqual(lines.contains { $0.hasSuffix(place) }, kind == "blocking", "\(lines)")
    }
  }

  /// While the daemon waits for it, and whatever its thread does. Its own deadline is 20 s: only the second signal can
  /// end it within the budget.
  func testAHookThatHangsIsDescribedAndCutShortByASecondSignal() throws {
    let daemon = try hanging("blocking", "slow")
    daemon.send(SIGQUIT)
    try daemon.expect(
      "lifecycle: Described: HangingObserver is still in its hook for DidEnterBackground (SIGTERM from pid "
    )
    // On a busy machine the hook's thread may not have come to its sleep yet.
    var line: String?
    for _ in 0..<100 where line == nil {
      daemon.send(SIGQUIT)
      line = try? daemon.expect("lifecycle: Described: thread ", within: 0.2)
    }
    let place = "waits in sleep, blockThread, HangingObserver.didEnterBackground."
    XCTAssertEqual(line?.hasSuffix(place), true, line ?? "no line")
    daemon.send(SIGTERM)
    try ends(daemon, .status(124))
    namesTheHangingHook(daemon)
  }

  func testAThirdSignalExitsAtOnce() throws {
    let daemon = try hanging("blocking", "slow")
    // One after another: signals that are pending together count once.
    daemon.send(SIGTERM)
    daemon.send(SIGINT)
    daemon.send(SIGTERM)
    daemon.send(SIGINT)
    let exit = try daemon.wait(within: budget)
    XCTAssertTrue([.status(128 + SIGTERM), .status(128 + SIGINT)].contains(exit), "\(exit)")
    XCTAssertFalse(daemon.output.contains { $0.hasPrefix("saver save") }, "it went on")
    let sentence = "lifecycle: A third signal: ending at once, "
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix(sentence) }, "\(daemon.output)")
  }

  // MARK: The end of the process

  func testAFullStdoutDoesNotKeepItAlive() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["full-stdout"])
    try daemon.expect("filling")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(within: budget, reading: false), .status(0))
  }

  func testTheExitGraceEndsWhatDoesNotEnd() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["exit-grace"], stderrToStdout: true)
    try daemon.expect("started")
    daemon.send(SIGTERM)
    try daemon.expect("code 0")
    try daemon.expect("lifecycle: Still running 1 s after the last hook: ending with status 0")
    try ends(daemon, .status(0))
  }

  func testASignalAfterTheSubjectIsGoneChangesNothing() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["late-signal"])
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    try ends(daemon, .status(0))
  }

  func testABrokenStderrDoesNotKill() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["broken-stderr"])
    try daemon.expect("foreground")
    daemon.send(SIGTERM)
    try ends(daemon, .status(70))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("save") })
  }

  // MARK: Bodies

  func testABodyThatEnds() throws {
    for (kind, status, cause) in [
      ("returns", Int32(0), "terminate: the body returned"),
      ("throws", 1, "terminate: body threw BodyError"),
    ] {
      let daemon = try ChildProcess(built("ProbeDaemon"), ["body", kind])
      try ends(daemon, .status(status))
      XCTAssertTrue(daemon.output.contains { $0.hasPrefix(cause) }, "\(daemon.output)")
    }
  }

  func testABodyThatThrowsWhenItIsCancelled() throws {
    for (kind, entry) in [
      ("late-throw", "body, WillTerminate"), ("foreground", "work, DidEnterBackground"),
    ] {
      let daemon = try ChildProcess(built("ProbeDaemon"), ["body", kind])
      try daemon.expect(kind == "late-throw" ? "body" : "round")
      daemon.send(SIGTERM)
      try ends(daemon, .status(0))
      let thrown = daemon.output.first { $0.hasPrefix("entry \(entry): threw") }
      XCTAssertTrue(thrown?.hasSuffix("BodyError()") == true, "\(kind): \(daemon.output)")
    }
  }

  func testABodyThatIsCancelled() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["body"])
    try daemon.expect("body")
    daemon.send(SIGTERM)
    try ends(daemon, .status(0))
    let body = try XCTUnwrap(
      daemon.output.firstIndex { $0.hasPrefix("entry body, WillTerminate: completed") })
    XCTAssertLessThan(
      body, try XCTUnwrap(daemon.output.firstIndex { $0.contains("ShouldSaveState") }))
  }

  func testABodyThatIgnoresItsCancellation() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["body", "ignores"])
    try daemon.expect("body")
    daemon.send(SIGTERM)
    try ends(daemon, .status(124))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("entry body, WillTerminate: abandoned") })
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("save") })
  }

  func testCancellingTheCallerTerminates() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["cancel"])
    try ends(daemon, .status(0))
    XCTAssertTrue(daemon.output.contains("terminate: the caller was cancelled"))
  }

  func testALaunchThatFails() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["launch-fails"])
    try ends(daemon, .status(70))
    XCTAssertTrue(daemon.output.contains("launch"), "a failing hook stops no other")
    XCTAssertTrue(daemon.output.contains("terminate: the launch failed"))
    XCTAssertFalse(daemon.output.contains("body"))
  }

  // MARK: Ownership

  func testWhatTheBodyOwnsLivesToSave() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["ownership"], stderrToStdout: true)
    try daemon.expect("owned tick 2")
    daemon.send(SIGTERM)
    try ends(daemon, .status(0))
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("owned save") })
    XCTAssertTrue(daemon.output.contains { $0.hasPrefix("owned terminate") })
    XCTAssertTrue(daemon.output.contains("saver save"), "the lifecycle holds it")
    XCTAssertFalse(daemon.output.contains { $0.contains("rphan") }, "it is held weakly")
  }

  func testSubjectsThatComeAndGoLeakNothing() throws {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["churn", "\(LongTests.count(300, long: 1000))"])
    let before = try daemon.expect("before").split(separator: " ").dropFirst().compactMap {
      Int($0)
    }
    let after = try daemon.expect("after", within: 60).split(separator: " ").dropFirst().compactMap
    { Int($0) }
    XCTAssertEqual(before[0], after[0], "file descriptors")
    XCTAssertEqual(before[1], after[1], "threads")
    // A leaked subject is more than 10 kB; what threads keep for later is less than 1 MB in all.
    XCTAssertLessThan(after[2] - before[2], 1024, "allocated memory, kB")
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
