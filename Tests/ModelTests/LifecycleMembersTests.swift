// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The members beside a plain sorted array: random additions, removals, changes and transitions.
@Suite struct LifecycleMembersTests {
  private typealias ObserverProgress = LifecycleMembers.ObserverProgress
  private typealias Known = (id: ObserverID, phase: LifecyclePhase, progress: ObserverProgress)

  private static let phases = (-2...2).flatMap {
    [LifecyclePhase(order: $0), LifecyclePhase(order: $0, isConcurrent: true)]
  }

  private static let questions: [@Sendable (ObserverProgress) -> Bool] = [
    { _ in true }, { $0.reachedState == .launching }, { $0.reachedState == .foreground },
    { $0.reachedState == .background }, { $0.isBusy }, { $0.isAsleep },
    { $0.isAsleep && !$0.isBusy }, { $0.launchFailed },
    { $0.shouldReceive(NotificationKind.didFinishLaunching.row.change) },
    { $0.shouldReceive(NotificationKind.shouldSaveState.row.change) },
  ]

  @Test(arguments: 0..<6) func asASortedArray(part: UInt64) {
    var random = SeededGenerator(seed: part)
    var members = LifecycleMembers()
    var model: [Known] = []
    var gone: [ObserverID] = []
    var lastID: UInt64 = 0
    // Now more come, now more go, so that groups grow, are tidied, and vanish.
    for step in 0..<4000 {
      let grows = step / 500 % 2 == 0
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<(grows ? 3 : 1):
        lastID += UInt64.random(in: 1...3, using: &random)
        let id = members.nextID(lastID)
        let phase = Self.phases.randomElement(using: &random)!
        members.add(id, phase: phase)
        model.append((id, phase, ObserverProgress()))
        model.sort { ($0.phase, $0.id) < ($1.phase, $1.id) }
      case 3..<(grows ? 4 : 6):
        guard let index = model.indices.randomElement(using: &random) else { continue }
        let id = model.remove(at: index).id
        _ = members.remove(id)
        gone.append(id)
      case 6:
        // Those that are gone, or never were, are nobody.
        let id = gone.randomElement(using: &random) ?? ObserverID(value: lastID + 1)
        _ = members.remove(id)
        members.update(id) { $0.isBusy = true }
      case 7:
        transition(&members, &model, &random)
      default:
        guard let index = model.indices.randomElement(using: &random) else { continue }
        let new = progress(&random)
        members.update(model[index].id) { $0 = new }
        model[index].progress = new
      }
      if step % 13 == 0, let problem = difference(members, model) {
        Issue.record("part \(part), step \(step): \(problem)")
        return
      }
    }
    for known in model.shuffled(using: &random) { _ = members.remove(known.id) }
    #expect(!members.contains { _ in true })
    #expect(difference(members, []) == nil)
  }

  /// What a delivery does: neighbour after neighbour, in one direction or the other.
  private func transition(
    _ members: inout LifecycleMembers, _ model: inout [Known], _ random: inout SeededGenerator
  ) {
    let new = progress(&random)
    let isDown = Bool.random(using: &random)
    let segment = model.indices.shuffled(using: &random).prefix(2).sorted()
    guard let first = segment.first, let last = segment.last else { return }
    for index in isDown ? Array((first...last).reversed()) : Array(first...last) {
      members.update(model[index].id) { $0 = new }
      model[index].progress = new
    }
  }

  private func progress(_ random: inout SeededGenerator) -> ObserverProgress {
    ObserverProgress(
      reachedState: [.launching, .background, .foreground].randomElement(using: &random)!,
      isBusy: Bool.random(using: &random), isAsleep: Bool.random(using: &random),
      launchFailed: Bool.random(using: &random))
  }

  private func difference(_ members: LifecycleMembers, _ model: [Known]) -> String? {
    for (number, isWanted) in Self.questions.enumerated() {
      let expected = model.filter { isWanted($0.progress) }
      if members.contains(where: isWanted) == expected.isEmpty { return "question \(number)" }
      for isReversed in [false, true] {
        let found = members.ids(where: isWanted, reversed: isReversed)
        let inOrder = isReversed ? expected.reversed() : expected
        if found != inOrder.map(\.id) {
          return "question \(number): \(found), reversed: \(isReversed)"
        }
      }
    }
    let isWrong = model.first { members.progress(of: $0.id) != $0.progress }
    return isWrong.map { "progress of \($0.id)" }
  }

  /// Tidying leaves those in place that are there.
  @Test func aGroupIsTidied() {
    var members = LifecycleMembers()
    let ids = (1...1000).map { ObserverID(value: UInt64($0), slot: $0 - 1) }
    for id in ids { members.add(id, phase: .standard) }
    for id in ids where id.value % 10 != 0 { _ = members.remove(id) }
    members.update(ids[499]) { $0.reachedState = .foreground }
    #expect(members.ids { _ in true }.map(\.value) == (1...100).map { UInt64($0 * 10) })
    #expect(members.ids { $0.reachedState == .foreground }.map(\.value) == [500])
    _ = members.removeAll()
    #expect(!members.contains { _ in true })
  }

  /// Half of the places at most are those of removed members, and 32 more: each tidying is paid for by as many
  /// removals as it moves members, and few members are never moved.
  @Test func removedMembersTakeNoMoreThanHalfOfTheRoom() {
    var members = LifecycleMembers()
    let ids = (1...100).map { ObserverID(value: UInt64($0), slot: $0 - 1) }
    for id in ids { members.add(id, phase: .standard) }
    var places: [Int] = []
    for id in ids {
      _ = members.remove(id)
      places.append(members.placesForTesting)
    }
    // Tidied when 51 of 100 were gone, and when 33 of 49 were; with the last one the group goes.
    let expected =
      Array(repeating: 100, count: 50) + Array(repeating: 49, count: 33)
      + Array(repeating: 16, count: 16) + [0]
    #expect(places == expected)
  }

  /// A delivery to those who came late does not look through all the others, and one to all asks each once.
  @Test(arguments: [false, true]) func fewAreFoundWithFewQuestions(isReversed: Bool) {
    var members = LifecycleMembers()
    let ids = (1...1000).map { ObserverID(value: UInt64($0), slot: $0 - 1) }
    for id in ids { members.add(id, phase: .standard) }
    for id in ids.dropLast(2) { members.update(id) { $0.reachedState = .foreground } }
    func questions(_ isWanted: @escaping (ObserverProgress) -> Bool) -> (found: Int, asked: Int) {
      var asked = 0
      let found = members.ids(
        where: {
          asked += 1
          return isWanted($0)
        }, reversed: isReversed)
      return (found.count, asked)
    }
    let late = questions { $0.reachedState == .launching }
    #expect(late.found == 2 && late.asked < 10)
    let all = questions { _ in true }
    #expect(all.found == 1000 && all.asked < 1010)
  }
}

extension LifecycleMembers {
  /// Adds an observer that receives nothing.
  mutating func add(_ id: ObserverID, phase: LifecyclePhase) {
    add(Member(id: id, phase: phase, name: .given("a"), receives: []))
  }
}
