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

  /// Signals, each with its time in milliseconds; and which of them count.
  struct Series: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let signals: [(LifecycleCause, Int64)]
    let counts: [Bool]
    var delay: Duration? = .seconds(1)

    init(
      _ name: String, _ signals: [(LifecycleCause, Int64)], _ counts: [Bool],
      delay: Duration? = .seconds(1)
    ) { (testDescription, self.signals, self.counts, self.delay) = (name, signals, counts, delay) }
  }

  static let series: [Series] = [
    Series("at once", [(manager, 5000), (wrapper, 5000)], [true, false]),
    Series("before the delay is over", [(manager, 5000), (wrapper, 5999)], [true, false]),
    Series("when the delay is over", [(manager, 5000), (wrapper, 6000)], [true, true]),
    // From the last that counted, and not from the last.
    Series(
      "those that do not count do not put it off", (0...4).map { (manager, $0 * 400) },
      [true, false, false, true, false]),
    Series("the key twice hurries at once", [(key, 0), (key, 150)], [true, true]),
    Series("a relay between presses", [(key, 0), (relay, 1), (key, 400)], [true, false, true]),
    Series("a relay before presses", [(relay, 0), (key, 1), (key, 400)], [true, false, true]),
    Series(
      "a held key does not end the process", (0..<30).map { (key, $0 * 30) },
      [true, true] + Array(repeating: false, count: 28)),
    Series("Ctrl-C and the parent's stop", [(key, 0), (wrapper, 500)], [true, false]),
    Series(
      "without a delay", [(key, 0), (key, 0), (key, 0)], [true, true, true], delay: .zero),
    Series(
      "nil: none but the first", [(key, 0), (key, 5000), (manager, 99_000)],
      [true, false, false], delay: nil),
  ]

  @Test(arguments: series) func itIsKnownWhichOfThemCount(_ series: Series) {
    var escalation = Escalation()
    let counts = series.signals.map { cause, time in
      let verdict = escalation.receive(cause, delay: series.delay, at: at(time))
      return if case .counts = verdict { true } else { false }
    }
    #expect(counts == series.counts)
  }

  // MARK: In a stop

  /// The daemon has ended, and what is left is exit(3): a late signal may shorten that, and is no other result.
  @Test func aThirdSignalAfterTheEndKeepsTheStatus() async throws {
    let mock = MockLifecycleSubject()
    try await mock.send(.sigterm)
    #expect(mock.exitResult?.exitStatus == 0)
    for _ in 0..<2 {
      await mock.advance(by: .seconds(2))
      mock.inject(.sigterm)
    }
    #expect(mock.immediateExitStatus == 0 && mock.exitResult?.exitStatus == 0)
  }
}
