// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestLimits
import TestSupport
import XCTest

/// One stop that arrives as several signals, sent as shells, terminals and supervisors send them.
final class EscalationTests: XCTestCase {
  /// Its hook takes two seconds, and says whether it was cut short.
  private static let daemon = ["escalation"]

  private func finishes(
    _ daemon: ChildProcess, _ status: Int32 = 0, line: UInt = #line
  ) throws {
    try daemon.expect("finished", line: line)
    try daemon.expect("saved", line: line)
    XCTAssertEqual(try daemon.wait(), .status(status), line: line)
    XCTAssertFalse(daemon.output.contains("cut short"), line: line)
  }

  /// A shell that relays a signal to the daemon, in one process group with it. Shells start jobs in the background with
  /// SIGINT ignored.
  private func wrapped(_ signal: String, terminal: String? = nil) throws -> ChildProcess {
    let start = #"env --default-signal=INT "$@" & C=$!"#
    let script = "trap 'kill -\(signal) $C' \(signal); \(start); wait $C; wait $C"
    let arguments = ["-c", script, "sh", built("ProbeDaemon")] + Self.daemon
    let shell = try ChildProcess(
      "/bin/sh", arguments, stderrToStdout: true, terminal: terminal)
    try shell.expect("started")
    return shell
  }

  /// As systemd's `KillMode=control-group`. Where the second comes before the first was taken up, the kernel makes one
  /// of them, and nobody hears of it.
  func testAWrapperThatRelaysWhatTheGroupGetsHurriesNobody() throws {
    try skipUnlessLong()
    let shell = try wrapped("TERM")
    kill(-shell.pid, SIGTERM)
    try finishes(shell)
  }

  func testAWrapperThatRelaysCtrlCHurriesNobody() throws {
    try skipUnlessLong()
    let terminal = try Terminal()
    let shell = try wrapped("INT", terminal: terminal.path)
    terminal.press("\u{3}")
    try finishes(shell)
  }

  func testTimeoutSendsOneStop() throws {
    try skipUnlessLong()
    let daemon = try ChildProcess(
      "/usr/bin/timeout", ["3", built("ProbeDaemon")] + Self.daemon, stderrToStdout: true)
    // The status of timeout(1) when the time was over.
    try finishes(daemon, 124)
  }

  private func onATerminal(_ arguments: String...) throws -> (
    daemon: ChildProcess, terminal: Terminal
  ) {
    let terminal = try Terminal()
    let daemon = try ChildProcess(
      built("ProbeDaemon"), Self.daemon + arguments, stderrToStdout: true, terminal: terminal.path)
    try daemon.expect("started")
    return (daemon, terminal)
  }

  /// As foreman and honcho: the terminal's signal, then their own.
  func testCtrlCAndTheParentsSignalAreOneStop() throws {
    let (daemon, terminal) = try onATerminal()
    terminal.press("\u{3}")
    try daemon.expect("pausing: Ctrl-C")
    daemon.send(SIGTERM)
    try finishes(daemon)
  }

  /// A reload would leave a daemon without a terminal, which nobody finds.
  func testATerminalThatIsClosedIsAStop() throws {
    var (daemon, terminal): (ChildProcess, Terminal?) = try onATerminal()
    withExtendedLifetime(terminal) { terminal = nil }
    try daemon.expect("pausing: SIGHUP: the terminal was closed")
    try finishes(daemon)
  }

  /// The kernel tells the shell, and that is all that the daemon hears of it.
  func testATerminalWhoseShellRelaysThatItWasClosedIsAStop() throws {
    var terminal: Terminal? = try Terminal()
    let shell = try wrapped("HUP", terminal: terminal?.path)
    terminal = nil
    try shell.expect("pausing: SIGHUP: the terminal was closed")
    try finishes(shell)
  }

  /// An operator's, while the terminal is there.
  func testAShellThatRelaysSIGHUPReloads() throws {
    let terminal = try Terminal()
    let shell = try wrapped("HUP", terminal: terminal.path)
    shell.send(SIGHUP)
    try shell.expect("reload")
    shell.send(SIGKILL)
  }

  func testAHeldKeyDoesNotCostTheSave() throws {
    let (daemon, terminal) = try onATerminal("long")
    terminal.press("\u{3}")
    try daemon.expect("pausing")
    terminal.press("\u{3}")
    try daemon.expect("cut short")
    try daemon.expect("saving")
    terminal.press("\u{3}")
    try daemon.expect("saved")
    XCTAssertEqual(try daemon.wait(), .status(124))
  }

  /// As systemd ends a session scope.
  func testSIGHUPAndSIGCONTAfterSIGTERMChangeNothing() throws {
    let daemon = try ChildProcess(built("ProbeDaemon"), Self.daemon, stderrToStdout: true)
    try daemon.expect("started")
    daemon.send(SIGTERM)
    daemon.send(SIGHUP)
    daemon.send(SIGCONT)
    try finishes(daemon)
  }
}

/// A terminal whose keys the test presses.
private final class Terminal {
  private let keyboard: Int32
  let path: String

  init() throws {
    var name = [CChar](repeating: 0, count: 64)
    keyboard = terminal_open(&name, name.count)
    guard keyboard >= 0 else {
      throw TestFailure("no terminal: \(String(cString: strerror(errno)))")
    }
    path = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit { close(keyboard) }

  func press(_ keys: String) {
    var keys = keys
    keys.withUTF8 { _ = write(keyboard, $0.baseAddress, $0.count) }
  }
}
