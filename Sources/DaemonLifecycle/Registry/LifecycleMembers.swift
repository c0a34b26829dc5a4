// SPDX-License-Identifier: Apache-2.0
/// The observers as the registry sees them, in the order in which they are notified on the way up: by phase, then by
/// id, which grows with each addition.
///
/// Adding and removing take constant time, apart from a search. So does finding the neighbour of the last one found,
/// which is how a delivery iterates, and finding the few that are behind the others.
struct LifecycleMembers: Sendable {
  /// The notifications that a member has received; earlier members are never behind later ones of the same phase.
  struct ObserverProgress: Equatable, Sendable {
    /// The state that it was notified of: `.launching` until the launch, `.foreground` until it is paused. Never above
    /// the registry's own state, except during a step.
    var reachedState = LifecycleState.launching
    /// Whether it has a hook that was abandoned and has not ended: it receives what it missed afterwards.
    var isBusy = false
    /// Whether it received WillSuspend, so that it will receive DidResume.
    var isSuspended = false
    /// Whether its launch failed: it receives nothing more, above all no ShouldSaveState, since it did not restore its
    /// state.
    var launchFailed = false

    /// Whether it should receive a step with this change. Changes of state apply only to members in the preceding
    /// state. A member that was not notified of the launch has nothing to pause, save or close.
    func shouldReceive(_ change: NotificationKind.Change) -> Bool {
      switch change {
      case .state(_, let earlier):
        reachedState == earlier && (earlier != .launching || !launchFailed)
      // One that was busy when the others were paused may be free again by now.
      case .suspended(true): reachedState == .background
      case .suspended(false): isSuspended
      case .nothing: reachedState != .launching
      }
    }
  }

  /// The number of members of each progress.
  private struct ProgressCounts: Sendable {
    private var counts = Array(repeating: 0, count: 24)
    /// One bit for each count that is not 0; nearly always one or two are set.
    private var present: UInt32 = 0

    private static func progress(at index: Int) -> ObserverProgress {
      ObserverProgress(
        reachedState: index < 8 ? .launching : index < 16 ? .background : .foreground,
        isBusy: index & 1 != 0, isSuspended: index & 2 != 0, launchFailed: index & 4 != 0)
    }

    private static func index(of progress: ObserverProgress) -> Int {
      let reachedState =
        switch progress.reachedState {
        case .launching: 0
        case .background: 1
        case .foreground, .terminated: 2  // no member is ever terminated
        }
      return reachedState * 8 + (progress.isBusy ? 1 : 0) + (progress.isSuspended ? 2 : 0)
        + (progress.launchFailed ? 4 : 0)
    }

    mutating func add(_ change: Int, of progress: ObserverProgress) {
      let index = Self.index(of: progress)
      counts[index] += change
      let bit = UInt32(1) << UInt32(index)
      present = counts[index] == 0 ? present & ~bit : present | bit
    }

    func count(where isWanted: (ObserverProgress) -> Bool) -> Int {
      var (sum, left) = (0, present)
      while left != 0 {
        let index = left.trailingZeroBitCount
        left &= left - 1
        if isWanted(Self.progress(at: index)) { sum += counts[index] }
      }
      return sum
    }

    func contains(where isWanted: (ObserverProgress) -> Bool) -> Bool {
      var left = present
      while left != 0 {
        if isWanted(Self.progress(at: left.trailingZeroBitCount)) { return true }
        left &= left - 1
      }
      return false
    }
  }

  struct Member: Sendable {
    let id: ObserverID
    let phase: LifecyclePhase
    fileprivate(set) var progress = ObserverProgress()
    /// Whether it was removed. Its place is kept until the next compaction, so that a removal moves no other member.
    fileprivate var isRemoved = false
  }

  /// The members of one phase, sorted by id.
  private struct Group: Sendable {
    let phase: LifecyclePhase
    var members: [Member] = []
    var removed = 0
  }

  private struct Place: Sendable {
    var group: Int
    var index: Int
  }

  /// Sorted by phase.
  private var groups: [Group] = []
  private var counts = ProgressCounts()
  /// The place of the last member that was found.
  private var last = Place(group: 0, index: 0)

  mutating func add(_ id: ObserverID, phase: LifecyclePhase) {
    let position = groups.firstIndex { !($0.phase < phase) } ?? groups.endIndex
    if position == groups.endIndex || groups[position].phase != phase {
      groups.insert(Group(phase: phase), at: position)
    }
    groups[position].members.append(Member(id: id, phase: phase))
    counts.add(1, of: ObserverProgress())
  }

  mutating func remove(_ id: ObserverID) {
    guard let place = place(of: id) else { return }
    counts.add(-1, of: groups[place.group].members[place.index].progress)
    groups[place.group].members[place.index].isRemoved = true
    groups[place.group].removed += 1
    let (removed, all) = (groups[place.group].removed, groups[place.group].members.count)
    if removed == all {
      groups.remove(at: place.group)
    } else if removed > 32, removed > all / 2 {
      groups[place.group].members.removeAll(where: \.isRemoved)
      groups[place.group].removed = 0
    }
  }

  mutating func removeAll() { self = LifecycleMembers() }

  /// Changes the progress of a member, if it is still there.
  mutating func update(_ id: ObserverID, _ change: (inout ObserverProgress) -> Void) {
    guard let place = place(of: id) else { return }
    last = place
    let old = groups[place.group].members[place.index].progress
    change(&groups[place.group].members[place.index].progress)
    let new = groups[place.group].members[place.index].progress
    guard new != old else { return }
    counts.add(-1, of: old)
    counts.add(1, of: new)
  }

  func contains(where isWanted: (ObserverProgress) -> Bool) -> Bool {
    counts.contains(where: isWanted)
  }

  func count(where isWanted: (ObserverProgress) -> Bool) -> Int { counts.count(where: isWanted) }

  /// The number of places, including those of removed members.
  var placesForTesting: Int { groups.reduce(0) { $0 + $1.members.count } }

  /// Calls `body` for the members that satisfy a condition, in order or, on the way down, in reverse.
  func forEach(
    where isWanted: (ObserverProgress) -> Bool, reversed isReversed: Bool = false,
    _ body: (Member) -> Void
  ) {
    let wanted = counts.count(where: isWanted)
    if wanted == 0 { return }
    if isReversed {
      var left = wanted
      for group in groups.reversed() {
        for index in group.members.indices.reversed() {
          let member = group.members[index]
          guard !member.isRemoved, isWanted(member.progress) else { continue }
          body(member)
          left -= 1
          if left == 0 { return }
        }
      }
    } else {
      let first = first(of: wanted, where: isWanted)
      for group in groups[first.group...] {
        let start = group.phase == groups[first.group].phase ? first.index : 0
        for index in start..<group.members.endIndex {
          let member = group.members[index]
          if !member.isRemoved, isWanted(member.progress) { body(member) }
        }
      }
    }
  }

  /// Returns the place of the first of the wanted members, searched from the end, where late members are.
  private func first(of wanted: Int, where isWanted: (ObserverProgress) -> Bool) -> Place {
    if wanted == counts.count(where: { _ in true }) { return Place(group: 0, index: 0) }
    var left = wanted
    for (number, group) in groups.enumerated().reversed() {
      for index in group.members.indices.reversed() {
        let member = group.members[index]
        if !member.isRemoved, isWanted(member.progress) { left -= 1 }
        if left == 0 { return Place(group: number, index: index) }
      }
    }
    return Place(group: 0, index: 0)
  }

  private func place(of id: ObserverID) -> Place? {
    if last.group < groups.count {
      let members = groups[last.group].members
      for index in [last.index + 1, last.index, last.index - 1]
      where members.indices.contains(index) && members[index].id == id {
        return members[index].isRemoved ? nil : Place(group: last.group, index: index)
      }
    }
    for (number, group) in groups.enumerated() {
      var (low, high) = (0, group.members.count)
      while low < high {
        let middle = (low + high) / 2
        if group.members[middle].id < id { low = middle + 1 } else { high = middle }
      }
      if low < group.members.count, group.members[low].id == id {
        return group.members[low].isRemoved ? nil : Place(group: number, index: low)
      }
    }
    return nil
  }
}
