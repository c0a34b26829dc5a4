// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The same schedules through the mock and through a real subject, with real threads and clock, give
/// identical observer logs.
@Suite struct EquivalenceTests {
  static let schedules = 1000

  @Test func mockAndSubjectTellTheSameStory() async throws {
    var told = 0
    for seed in 0..<UInt64(Self.schedules) {
      let onMock = try await Schedule(seed: seed).play(on: MockLifecycleSubject(state: .launching))
      let subject = LifecycleSubject(configuration: .init(signals: [:], logging: .off))
      let onSubject = try await Schedule(seed: seed).play(on: subject)
      #expect(onMock == onSubject, "seed \(seed)")
      if onMock != onSubject { return }
      told += onMock.count
    }
    // An empty log would be equal too.
    #expect(told > Self.schedules * 10)
  }
}

/// Random events, observers and calls: some between deliveries, some in the middle of a certain hook.
private final class Schedule: Sendable {
  enum Move: Sendable {
    case launch
    case event(LifecycleRequest)
    case post(Int)
    case add(Int)
    case remove(Int)
    case hold, release
    case throwError
  }

  struct Note: CustomNotification { let number: Int }

  private struct State {
    var log: [String] = []
    var hold: LifecycleToken?
    var owners: Set<Int> = []
  }

  private let state = Mutex(State())
  private let moves: [Move]
  /// What happens in the n-th hook that is called.
  private let inHooks: [Int: Move]
  private let observers: [Teller]
  private let phases: [LifecyclePhase]

  init(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    observers = (0..<5).map { Teller(number: $0) }
    phases = (0..<5).map { _ in LifecyclePhase(order: Int.random(in: -1...1, using: &random)) }
    moves = (0..<Int.random(in: 5...15, using: &random)).map { _ in
      Self.move(&random, canHold: true)
    }
    var inHooks: [Int: Move] = [:]
    for _ in 0..<Int.random(in: 0...8, using: &random) {
      inHooks[Int.random(in: 0..<30, using: &random)] = Self.move(&random, canHold: false)
    }
    self.inHooks = inHooks
  }

  private static func move(_ random: inout SeededGenerator, canHold: Bool) -> Move {
    switch Int.random(in: 0..<16, using: &random) {
    case 0, 1: .event(.pause(for: .operator))
    case 2, 3: .event(.resume(for: .operator))
    case 4: .event(.sleep)
    case 5: .event(.wakeUp)
    case 6: .event(.reload)
    case 7: .event(.pressure)
    case 8, 9: .post(Int.random(in: 0..<100, using: &random))
    case 10, 11: .add(Int.random(in: 0..<5, using: &random))
    case 12: .remove(Int.random(in: 0..<5, using: &random))
    case 13: canHold ? (random.chance(50) ? .hold : .release) : .throwError
    case 14: random.chance(30) ? .event(.terminate) : .event(.saveState)
    default: canHold ? .launch : .throwError
    }
  }

  func play(on subject: some LifecycleObservable) async throws -> [String] {
    for observer in observers { observer.play.withLock { $0 = (self, subject) } }
    await make(.add(0), subject)
    await make(.add(1), subject)
    await make(.launch, subject)
    try await eventually { subject.core.rest.isIdle }
    for move in moves {
      await make(move, subject)
      try await eventually { subject.core.rest.isIdle }
    }
    state.withLock { $0.hold }?.cancel()
    try await eventually { subject.core.rest.isIdle }
    await make(.event(.terminate), subject)
    try await eventually { subject.core.rest.isIdle }
    for observer in observers { observer.play.withLock { $0 = nil } }
    return state.withLock { $0.log }
  }

  private func make(_ move: Move, _ subject: any LifecycleObservable) async {
    switch move {
    case .launch: subject.core.launch { true }
    case .event(let kind): subject.core.receive(LifecycleEvent(kind))
    case .post(let number):
      // Behind a hold a post would wait for ever.
      guard !subject.core.state.withLock({ $0.machine.registry.isHeld }) else { return }
      guard subject.state != .launching else { return }
      await subject.post(Note(number: number))
    case .add(let number):
      let observer = observers[number]
      // Before the observer, whose hooks may post; and once, since an owner may have any number of closures.
      if state.withLock({ $0.owners.insert(number).inserted }) {
        subject.observe(Note.self, owner: observer, phase: phases[number]) {
          try await $0.receive($1)
        }
      }
      subject.addObserver(observer, phase: phases[number])
    case .remove(let number):
      state.withLock { _ = $0.owners.remove(number) }
      subject.removeObserver(observers[number])
    case .hold:
      let hold = subject.holdDeliveries()
      state.withLock { $0.hold = hold }
    case .release:
      state.withLock { state in
        defer { state.hold = nil }
        return state.hold
      }?.cancel()
    case .throwError: break
    }
  }

  func heard(_ text: String, _ subject: any LifecycleObservable) async throws {
    let count = state.withLock { state in
      state.log.append("\(text) in \(subject.state)")
      return state.log.count
    }
    guard let move = inHooks[count] else { return }
    await make(move, subject)
    // One that can't enter the foreground would be called again after a second, which passes for a subject alone.
    if case .throwError = move, !text.hasSuffix(" WillEnterForeground") { throw Thrown() }
  }

  struct Thrown: Error {}
}

private final class Teller: EveryHookObserver {
  let number: Int
  let play = Mutex<(Schedule, any LifecycleObservable)?>(nil)
  init(number: Int) { self.number = number }

  func receive(_ notification: some LifecycleNotification) async throws {
    guard let (schedule, subject) = play.withLock({ $0 }) else { return }
    let name =
      (notification as? Schedule.Note).map { "note \($0.number)" } ?? "\(type(of: notification))"
    try await schedule.heard("\(number) \(name)", subject)
  }
}
