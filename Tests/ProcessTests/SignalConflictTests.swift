// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Glibc
import TestSupport
import XCTest

/// Signals that other code of the daemon takes: they are noticed and named, and shared where Dispatch has them.
final class SignalConflictTests: XCTestCase {
  /// A daemon in which the signal was taken in these ways.
  private func daemon(
    _ signal: Int32, _ ways: [String], environment: [String: String] = [:]
  ) throws -> ChildProcess {
    let daemon = try ChildProcess(
      built("ProbeDaemon"), ["thief", "\(signal)"] + ways, environment: environment,
      stderrToStdout: true)
    try daemon.expect("foreground")
    return daemon
  }

  private static let joined =
    "lifecycle: SIGHUP is also handled by a DispatchSource of this process, as ServiceGroup, Hummingbird's runService and"
    + " Vapor's start create. Both receive it, and its sender is unknown now. Remove it from one:"
    + " gracefulShutdownSignals: [], or signals[.sighup] = nil."

  /// Sends 50 signals, one after another, and waits until all that should have received each.
  private func share(
    _ daemon: ChildProcess, _ receivers: String..., file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    for _ in 0..<50 {
      let first = daemon.output.count
      daemon.send(SIGHUP)
      for receiver in receivers where !daemon.output[first...].contains(receiver) {
        try daemon.expect(receiver, file: file, line: line)
      }
    }
  }

  /// Each has received each once, with one warning.
  private func end(
    _ daemon: ChildProcess, ours: Int, theirs: Int, file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0), file: file, line: line)
    XCTAssertEqual(daemon.output.count { $0 == Self.ours }, ours, file: file, line: line)
    XCTAssertEqual(daemon.output.count { $0 == "theirs" }, theirs, file: file, line: line)
    let warnings = daemon.output.count { $0.hasPrefix("lifecycle: SIGHUP") }
    XCTAssertEqual(warnings, 1, file: file, line: line)
  }

  private static let ours = "reload: SIGHUP by way of Dispatch"

  /// Of the body, from before the start, and of the body where Dispatch's handler was found at the start.
  func testASourceAndTheSubjectBothReceive() throws {
    for ways in [["body"], ["before"], ["before-cancelled", "body"]] {
      let daemon = try daemon(SIGHUP, ways)
      // The warning may be of the handler that a cancelled source has left: the other source may not be there yet.
      for line in [Self.joined, "did \(ways.last!)"] where !daemon.output.contains(line) {
        try daemon.expect(line)
      }
      try share(daemon, Self.ours, "theirs")
      try end(daemon, ours: 50, theirs: 50)
    }
  }

  /// Dispatch never puts a handler back: a signal without a source would go nowhere.
  func testACancelledSource() throws {
    let daemon = try daemon(SIGHUP, ["cancelled"])
    // In either order: the warning may come while it is cancelled.
    for line in [Self.joined, "did cancelled"] where !daemon.output.contains(line) {
      try daemon.expect(line)
    }
    try share(daemon, Self.ours)
    try end(daemon, ours: 50, theirs: 0)
  }

  func testASourceThatIsCancelledLater() throws {
    let daemon = try daemon(SIGHUP, ["cancels"])
    try daemon.expect(Self.joined)
    try share(daemon, Self.ours, "theirs")
    if !daemon.output.contains("cancelled") { try daemon.expect("cancelled") }
    try share(daemon, Self.ours)
    try end(daemon, ours: 100, theirs: 50)
  }

  /// A library had the signal when the source was made, and has put our handler back: Dispatch's descriptor competes with it.
  func testASourceThatNoHandlerShows() throws {
    for ways in [["hidden"]] + (LongTests.areRequested ? [["late", "hidden"]] : []) {
      let daemon = try daemon(SIGHUP, ways)
      try daemon.expect("did hidden")
      // Later than at the start a signal shows it, and some are lost until then.
      try eventually {
        if ways.count > 1 { daemon.send(SIGHUP) }
        _ = try? daemon.expect("nothing", within: 0.1)
        return daemon.output.contains(Self.joined)
      }
      for _ in 0..<50 {
        daemon.send(SIGHUP)
        try daemon.expect("reload: SIGHUP")
      }
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0))
    }
  }

  /// No signal is lost while it changes: the source that was made for Dispatch's stays.
  func testAHandlerThatChangesAgainAndAgain() throws {
    let daemon = try daemon(SIGHUP, ["flips"])
    for line in [Self.joined, "did flips"] where !daemon.output.contains(line) {
      try daemon.expect(line)
    }
    for _ in 0..<LongTests.count(100, long: 1000) {
      daemon.send(SIGHUP)
      try daemon.expect("reload: SIGHUP")
    }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// By signal(2), so without its arguments: it has no sender for a while, and is no thief's.
  func testOursPutBackByTheOldCallIsOurs() throws {
    let daemon = try daemon(SIGHUP, ["put-back"])
    try daemon.expect("did put-back")
    for _ in 0..<20 {
      daemon.send(SIGHUP)
      try daemon.expect("reload: SIGHUP")
    }
    try eventually {
      daemon.send(SIGHUP)
      return try daemon.expect("reload: SIGHUP").hasPrefix("reload: SIGHUP from pid \(getpid())")
    }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(daemon.output.filter { $0.hasPrefix("lifecycle: SIG") }, [])
  }

  func testAHandlerThatPassesItOnIsNoThief() throws {
    let manager = try FakeServiceManager()
    let daemon = try daemon(SIGHUP, ["chained"], environment: manager.environment)
    _ = try manager.next { $0["STATUS"]?.contains("SIGHUP is handled by other code") == true }
    manager.willRequestReload()
    daemon.send(SIGHUP)
    try daemon.expect("reload: SIGHUP by way of another handler")
    _ = try manager.next {
      $0["STATUS"].map { $0.hasPrefix("foreground") && !$0.contains("SIGHUP was") } == true
    }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// Its first signal comes before the check that finds it.
  func testAHandlerThatPassesItOnLaterIsNoThief() throws {
    try skipUnlessLong()
    let daemon = try daemon(SIGHUP, ["late", "chained"])
    try daemon.expect("did chained")
    daemon.send(SIGHUP)
    let first = try daemon.expect("reload: SIGHUP")
    try XCTSkipUnless(first.hasSuffix("another handler"), "The signalfd has taken it, as it may.")
    // The check follows.
    for _ in 0..<20 {
      daemon.send(SIGHUP)
      try daemon.expect("reload: SIGHUP")
    }
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains { $0.contains("handled by other code") })
  }

  /// A command ran as the daemon started. nohup(1) ignores it for good: see `SignalTests`.
  func testASignalThatWasIgnoredAtTheStartIsTakenLater() throws {
    let daemon = try daemon(SIGINT, ["ignored-first"])
    try daemon.expect("did ignored-first")
    try eventually {
      let caught = processStatus("SigCgt", of: daemon.pid)
      let mask = caught.flatMap { UInt64($0, radix: 16) } ?? 0
      return mask >> UInt64(SIGINT - 1) & 1 == 1
    }
    daemon.send(SIGINT)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// A command ends while the daemon is launched, which it waits for before the check that follows.
  func testASignalWhoseCommandEndsDuringTheLaunchIsTakenAtOnce() throws {
    let daemon = try daemon(SIGINT, ["launching"])
    XCTAssertTrue(daemon.output.contains("taken"))
    daemon.send(SIGINT)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// Nobody listens any more: the signal does what it did before the start.
  func testACommandThatOutlastsTheSubjectLeavesNothingBehind() throws {
    XCTAssertEqual(try end(afterOneMoreSignal: "overlaps"), .signal(SIGHUP))
  }

  func testAHandlerThatOutlastsTheSubjectStaysInForce() throws {
    XCTAssertEqual(try end(afterOneMoreSignal: "chained"), .status(0))
  }

  /// The end of a daemon that gets its signal once more after its subject's.
  private func end(afterOneMoreSignal way: String) throws -> ChildProcess.Exit {
    let daemon = try daemon(SIGHUP, [way, "outlives"])
    try daemon.expect("did \(way)")
    daemon.send(SIGTERM)
    return try daemon.wait()
  }

  func testSwiftsPoolAndDispatchAreBlocked() throws {
    let daemon = try daemon(SIGHUP, ["body", "blocked"])
    try daemon.expect("did blocked")
    if !daemon.output.contains(Self.joined) { try daemon.expect(Self.joined) }
    try share(daemon, Self.ours, "theirs")
    try end(daemon, ours: 50, theirs: 50)
  }

  func testOtherHandlersAreNamed() throws {
    let ways = [
      ("function", "is handled by other code, in ProbeDaemon: shouldReload is not called. "),
      ("library", "is handled by other code, in libc.so.6: shouldReload is not called. "),
      ("ignored", "is ignored since other code set SIG_IGN: shouldReload is not called."),
      (
        "default",
        "has its default action since other code set SIG_DFL: shouldReload is not called."
      ),
    ]
    for (way, sentence) in ways {
      let daemon = try daemon(SIGHUP, [way])
      try daemon.expect("lifecycle: SIGHUP \(sentence)")
      if way == "function" { try share(daemon, "theirs") }
      if way == "default" { continue }
      try end(daemon, ours: 0, theirs: way == "function" ? 50 : 0)
      XCTAssertFalse(daemon.output.contains { $0.hasPrefix("reload") })
    }
    try daemon(SIGTERM, ["ignored"]).expect(
      "lifecycle: SIGTERM is ignored since other code set SIG_IGN: systemctl stop will end in SIGKILL."
    )
  }

  /// Until other code puts our handler back, as libraries do that need a signal for a while.
  func testTheStatusHasItAsLongAsItLasts() throws {
    let manager = try FakeServiceManager()
    let daemon = try daemon(SIGHUP, ["returned"], environment: manager.environment)
    _ = try manager.next {
      $0["STATUS"]?.hasSuffix("; SIGHUP is handled by other code, in ProbeDaemon") == true
    }
    daemon.send(SIGUSR1)
    try daemon.expect("did returned")
    // The report of a resumption has the handlers checked again.
    daemon.send(SIGUSR2)
    _ = try manager.next {
      $0["STATUS"].map { $0.hasPrefix("foreground") && !$0.contains("SIGHUP") } == true
    }
    manager.willRequestReload()
    daemon.send(SIGHUP)
    try daemon.expect("reload: SIGHUP from pid \(getpid())")
    try end(daemon, ours: 0, theirs: 0)
  }

  func testRestoredSignalsAreLeftToTheOther() throws {
    let manager = try FakeServiceManager()
    let daemon = try daemon(
      SIGHUP, ["body", "paused", "restored"], environment: manager.environment)
    _ = try manager.next { $0["STATUS"]?.contains("SIGHUP") == true }
    daemon.send(SIGUSR1)
    try daemon.expect("did restored")
    _ = try manager.next { $0["STATUS"]?.contains("SIGHUP") == false }
    try share(daemon, "theirs")
    XCTAssertFalse(daemon.output.contains(Self.ours))
  }

  /// system(3) ignores SIGINT and SIGQUIT while it runs.
  func testACommandIsNoThief() throws {
    let daemon = try daemon(SIGINT, ["system"])
    try daemon.expect("did system")
    daemon.send(SIGINT)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertFalse(daemon.output.contains { $0.hasPrefix("lifecycle: SIGINT") })
  }

  func testThousandChildrenAreNoThieves() throws {
    let daemon = try daemon(SIGHUP, ["children"])
    try daemon.expect("did children", within: 120)
    daemon.send(SIGHUP)
    try daemon.expect("reload: SIGHUP from")
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
    XCTAssertEqual(daemon.output.filter { $0.hasPrefix("lifecycle: SIG") }, [])
  }
}
