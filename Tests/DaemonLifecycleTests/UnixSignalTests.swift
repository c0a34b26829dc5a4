// SPDX-License-Identifier: Apache-2.0
import CLinux
import Testing

@testable import DaemonLifecycle

@Suite struct UnixSignalTests {
  @Test func everySignalHasAName() {
    let all = (1...clinux_sigrtmax()).compactMap { UnixSignal(rawValue: $0) }
    #expect(all.count > 50 && Set(all.map(\.description)).count == all.count)
    #expect(UnixSignal.sigterm.description == "SIGTERM")
    #expect(UnixSignal.realTime(3)?.description == "SIGRTMIN+3")
    let written = [UnixSignal.sigusr1, .realTime(3)!, UnixSignal(rawValue: SIGWINCH)!]
    #expect(
      written.map(\.expression)
        == [".sigusr1", ".realTime(3)!", "UnixSignal(rawValue: SIGWINCH)!"])
    for number in [-1, 0, SIGKILL, SIGSTOP, clinux_sigrtmin() - 1, clinux_sigrtmax() + 1] {
      #expect(UnixSignal(rawValue: number) == nil)
    }
  }

  @Test func realTimeSignalsCountFromTheFirst() {
    #expect(UnixSignal.realTime(0)?.description == "SIGRTMIN")
    #expect(UnixSignal.realTime(-1) == nil)
    #expect(UnixSignal.realTime(count + 1) == nil)
  }

  private var count: Int { (0...64).last { UnixSignal.realTime($0) != nil }! }

  @Test(arguments: [SIGCONT, SIGSEGV, SIGFPE].map { UnixSignal(rawValue: $0)! })
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
    map[.sigalrm] = .saveState
    #expect(
      map.signals.map(\.description) == ["SIGHUP", "SIGINT", "SIGUSR2", "SIGALRM", "SIGTERM"])
    // Of two actions for a signal the last counts.
    let twice: SignalMap = [.sigterm: .reload, .sighup: .saveState, .sigterm: .terminate]
    #expect(twice.signals == [.sighup, .sigterm])
    guard case .terminate = twice[.sigterm] else {
      Issue.record("\(twice)")
      return
    }
  }
}
