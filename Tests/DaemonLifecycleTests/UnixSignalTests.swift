// SPDX-License-Identifier: Apache-2.0
import CLinux
import Testing

@testable import DaemonLifecycle

@Suite struct UnixSignalTests {
  @Test func everySignalSurvivesItsName() {
    let all = (1...clinux_sigrtmax()).compactMap { UnixSignal(rawValue: $0) }
    #expect(all.count > 50)
    for signal in all { #expect(UnixSignal(signal.description) == signal) }
  }

  @Test(arguments: [
    ("SIGTERM", "SIGTERM"), ("term", "SIGTERM"), ("15", "SIGTERM"), ("Hup", "SIGHUP"),
    ("1", "SIGHUP"),
    ("RTMIN", "SIGRTMIN"), ("SIGRTMIN+3", "SIGRTMIN+3"), ("rtmin+3", "SIGRTMIN+3"),
    ("IOT", "SIGABRT"),
    ("CLD", "SIGCHLD"), ("POLL", "SIGIO"),
  ])
  func parses(_ text: String, _ name: String) { #expect(UnixSignal(text)?.description == name) }

  @Test(arguments: [
    "", "SIG", "KILL", "SIGKILL", "STOP", "9", "19", "0", "-1", "65", "32", "99999999999", "SIGFOO",
    "15 ",
    " 15", "+15", "RTMIN-1", "RTMAX+1", "RTMIN+", "RTMIN+99", "RTMIN+-1", "RTMAX-99", "SIGSIGTERM",
    "١٥",
  ])
  func rejects(_ text: String) { #expect(UnixSignal(text) == nil) }

  @Test func realTimeSignalsCountFromBothEnds() {
    #expect(UnixSignal("RTMAX-1") != nil)
    #expect(UnixSignal("RTMAX-30") == UnixSignal("RTMIN+\(count - 30)"))
    #expect(UnixSignal.realTime(0)?.description == "SIGRTMIN")
    #expect(UnixSignal.realTime(-1) == nil)
    #expect(UnixSignal.realTime(count + 1) == nil)
  }

  private var count: Int { (0...64).last { UnixSignal.realTime($0) != nil }! }

  @Test(arguments: [UnixSignal("CONT")!, UnixSignal("SEGV")!, UnixSignal("FPE")!])
  func whatCannotBeMappedIsRefused(_ signal: UnixSignal) async throws {
    let subject = LifecycleSubject(configuration: .init(signals: [signal: .saveState]))
    await #expect(throws: LifecycleError.self) { try await subject.start() }
    do { try await subject.start() } catch LifecycleError.signalNotMappable(let named, let reason) {
      #expect(named == signal)
      #expect(!reason.isEmpty)
    }
  }

  @Test func theMapIsData() {
    var map = SignalMap.standard
    #expect(
      map.signals.map(\.description) == ["SIGHUP", "SIGINT", "SIGUSR1", "SIGUSR2", "SIGTERM"])
    map[.sigusr1] = nil
    map[.sigwinch] = .saveState
    #expect(
      map.signals.map(\.description) == ["SIGHUP", "SIGINT", "SIGUSR2", "SIGTERM", "SIGWINCH"])
    // Of two actions for a signal the last counts.
    let twice: SignalMap = [.sigterm: .reload, .sighup: .saveState, .sigterm: .terminate]
    #expect(twice.signals == [.sighup, .sigterm])
    guard case .terminate = twice[.sigterm] else {
      Issue.record("\(twice)")
      return
    }
  }
}
