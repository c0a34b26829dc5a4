// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonLifecycleTesting

/// Which terminating signals count, by what is really sent.
@Suite struct EscalationTests {
  private static let key = LifecycleCause(.signal(.sigint, from: .kernel, coalesced: 1))
  private static let relay = LifecycleCause(
    .signal(.sigint, from: .process(pid: 7, uid: 0), coalesced: 1))
  private static let manager = LifecycleCause(
    .signal(.sigterm, from: .process(pid: 1, uid: 0), coalesced: 1))
  private static let wrapper = LifecycleCause(
    .signal(.sigterm, from: .process(pid: 7, uid: 0), coalesced: 1))

  private func at(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  /// Which of them count, each with its time in milliseconds.
  private func counting(
    _ signals: [(LifecycleCause, Int64)], delay: Duration? = .seconds(1)
  ) -> [Bool] {
    var escalation = Escalation()
    return signals.map { cause, time in
      let verdict = escalation.receive(cause, delay: delay, at: at(time))
      if case .counts = verdict { return true } else { return false }
    }
  }

  @Test(arguments: [(Int64(0), false), (999, false), (1000, true)])
  func aSecondOneCountsWhenTheDelayIsOver(_ time: Int64, _ counts: Bool) {
    #expect(counting([(Self.manager, 5000), (Self.wrapper, 5000 + time)]) == [true, counts])
  }

  /// From the last that counted, and not from the last.
  @Test func thoseThatDoNotCountDoNotPutItOff() {
    let signals = (0...4).map { (Self.manager, Int64($0) * 400) }
    #expect(counting(signals) == [true, false, false, true, false])
  }

  /// As GNU parallel's `--termseq`.
  @Test func aSeriesOfOneSupervisorIsOneStop() {
    #expect(
      counting([(Self.manager, 0), (Self.manager, 200), (Self.manager, 300)])
        == [true, false, false])
  }

  @Test func pressingTheKeyTwiceHurriesAtOnce() {
    #expect(counting([(Self.key, 0), (Self.key, 150)]) == [true, true])
  }

  @Test func aRelayBetweenTwoPressesDoesNotHideThem() {
    #expect(
      counting([(Self.key, 0), (Self.relay, 1), (Self.key, 400)]) == [true, false, true])
    #expect(
      counting([(Self.relay, 0), (Self.key, 1), (Self.key, 400)]) == [true, false, true])
  }

  @Test func aHeldKeyHurriesAndDoesNotEndTheProcess() {
    let presses = (0..<30).map { (Self.key, Int64($0) * 30) }
    #expect(counting(presses).count { $0 } == 2)
  }

  @Test func anAnsweredCtrlCAndTheParentsTerminationAreOne() {
    #expect(counting([(Self.key, 0), (Self.wrapper, 500)]) == [true, false])
  }

  @Test func withoutADelayEachCounts() {
    #expect(
      counting([(Self.key, 0), (Self.key, 0), (Self.key, 0)], delay: .zero) == [true, true, true])
  }

  @Test func withNilNoneButTheFirstDoes() {
    #expect(
      counting([(Self.key, 0), (Self.key, 5000), (Self.manager, 99_000)], delay: nil)
        == [true, false, false])
  }

  @Test func itIsSaidOnceWhyNothingHappens() {
    var escalation = Escalation()
    var said: [String?] = []
    for (cause, time) in [(Self.manager, 0), (Self.wrapper, 200), (Self.wrapper, 300)] {
      guard
        case .isSameStop(let text) = escalation.receive(
          cause, delay: .seconds(1), at: at(Int64(time)))
      else { continue }
      said.append(text)
    }
    #expect(
      said == [
        "SIGTERM from pid 7 uid 0, 200 ms after SIGTERM from pid 1 uid 0: taken as the same stop",
        nil,
      ])
  }

  // MARK: In a stop

  @Test func aDuplicateDoesNotEndTheDrain() async throws {
    let mock = MockLifecycleSubject(configuration: .init(stopDelay: .seconds(20)))
    mock.inject(.sigterm)
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(19))
    #expect(mock.state == .foreground && mock.exit == nil)
    mock.inject(.sigterm)
    try await mock.settled()
    #expect(mock.exit?.code == 0)
  }

  /// The first signal of a stop that a call has begun is the first signal all the same.
  @Test func aCallIsNoSignal() async throws {
    let mock = MockLifecycleSubject()
    let gate = Gate()
    let stuck = Scripted(background: { _ in await gate.wait() })
    mock.addObserver(stuck)
    try await mock.settled()
    mock.terminate()
    mock.inject(.sigterm)
    await mock.advance(by: .seconds(1))
    mock.inject(.sigterm)
    #expect(mock.immediateExitCode == nil)
    await mock.advance(by: .seconds(1))
    mock.inject(.sigterm)
    // By then the stop has ended, with its own status.
    #expect(mock.immediateExitCode == 124)
    gate.open()
  }

  /// The daemon has ended, and what is left is exit(3): a late signal may shorten that, and is no other result.
  @Test func aThirdSignalAfterTheEndKeepsTheStatus() async throws {
    let mock = MockLifecycleSubject()
    try await mock.send(.sigterm)
    #expect(mock.exit?.code == 0)
    for _ in 0..<2 {
      await mock.advance(by: .seconds(2))
      mock.inject(.sigterm)
    }
    #expect(mock.immediateExitCode == 0 && mock.exit?.code == 0)
  }
}
