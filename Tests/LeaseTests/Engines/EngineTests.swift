// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import Testing

/// Pairs of daemons whose electors are real, of which one is killed, frozen or cut off again and again. No line of their ledger
/// is lost or written twice, and none is by one after another with a higher token has written.
///
///     LEASE_ENGINES=flock,etcd,postgresql LEASE_ROUNDS=20 swift test --filter EngineTests
@Suite(.serialized, .offThePool, .timeLimit(.minutes(15))) struct EngineTests {
  private static let variables = ProcessInfo.processInfo.environment
  /// All rounds of these.
  private static let requested = variables["LEASE_ENGINES"]?.split(separator: ",").map(String.init)
  private static let rounds = variables["LEASE_ROUNDS"].flatMap { Int($0) } ?? 1
  private static let howTo: Comment =
    "All rounds: LEASE_ENGINES=flock,etcd,postgresql LEASE_ROUNDS=20 swift test --filter EngineTests"
  private static let hasEtcd = ConditionTrait.enabled(
    if: Engine.Kind.etcd.lack == nil, Comment(rawValue: Engine.Kind.etcd.lack ?? ""))

  @Test(.enabled(if: requested != nil, howTo), arguments: requested ?? [])
  func everyRound(_ name: String) throws {
    let kind = try #require(Engine.Kind(rawValue: name), "LEASE_ENGINES names no engine")
    if let lack = kind.lack { throw TestFailure(lack) }
    try prove(kind, rounds: Self.rounds)
  }

  @Test(arguments: [Event.term, .kill, .freeze]) func onFlock(_ event: Event) throws {
    try prove(.flock, [event])
  }

  @Test(Self.hasEtcd) func onEtcd() throws { try prove(.etcd, [.term, .kill]) }

  /// These wait for the time to live.
  @Test(.long, Self.hasEtcd) func onEtcdCutOff() throws {
    try prove(.etcd, [.freeze, .partition, .place])
  }

  private func prove(_ kind: Engine.Kind, _ events: [Event]? = nil, rounds: Int = 1) throws {
    let engine = try kind.start()
    let pair = try Pair(engine)
    if events?.contains(.partition) == true, !engine.events.contains(.partition) {
      print("\(kind.rawValue): no partition, which needs root, and ip of iproute2")
    }
    for event in engine.events where events?.contains(event) ?? true {
      try repeated(event, event.rounds(rounds), pair)
    }
    let problems = try pair.end()
    let (lines, tokens) = (pair.ledger.all.count, Set(pair.ledger.all.map(\.token)).count)
    print("\(kind.rawValue): \(lines) lines under \(tokens) tokens, \(problems.count) problems")
    #expect(problems == [])
  }

  private func repeated(_ event: Event, _ count: Int, _ pair: Pair) throws {
    let before = pair.count("is refused")
    let rounds = try (0..<count).map { try Round(event, in: pair, number: $0) }
    // A writer that was frozen or cut off goes on, or tries to.
    _ = try pair.settle()
    let takeOvers = rounds.compactMap(\.takeOver)
    if let expected = event.takesOver(pair.engine) {
      #expect(takeOvers.count == (expected ? count : 0), "\(event)")
    }
    let partly = takeOvers.count < count ? "\(takeOvers.count) " : ""
    let outcome = takeOvers.isEmpty ? "kept" : "\(partly)take-over \(Self.summary(takeOvers))"
    print(
      """
      \(pair.engine.kind.rawValue), \(event.rawValue): \(count) rounds, \(outcome); \
      no line for \(Self.summary(rounds.map(\.pause))); \
      \(pair.count("is refused") - before) refused by the fence
      """)
  }

  private static func summary(_ milliseconds: [Int]) -> String {
    let sorted = milliseconds.sorted()
    return "p50 \(sorted[sorted.count / 2]) ms, max \(sorted[sorted.count - 1]) ms"
  }

  // MARK: The checker

  @Test(arguments: [
    "1 a 5 10|3 a 5 11", "1 a 5 10|1 a 5 11", "2 a 5 10", "1 a 5 10|2 b 6 11|3 a 5 12",
    "1 a 5 10|2 b 5 11", "1 a 5 10|2 a 5 9",
  ]) func theCheckerSees(_ text: String) throws {
    let lines = try text.split(separator: "|").map { try #require(LedgerLines.Line(String($0))) }
    #expect(LedgerLines.problems(lines).count >= 1)
    let right = ["1 a 5 10", "2 a 5 10", "3 b 6 11", "4 b 6 12", "5 a 9 12"]
    #expect(LedgerLines.problems(right.compactMap(LedgerLines.Line.init)) == [])
  }
}
