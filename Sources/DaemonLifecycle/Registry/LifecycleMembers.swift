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

  /// The number of members of each progress that one has: nearly always one or two.
  private struct ProgressCounts: Sendable {
    private struct Count: Sendable {
      let progress: ObserverProgress
      var members = 0
    }

    private var counts: [Count] = []

    mutating func add(_ change: Int, of progress: ObserverProgress) {
      let known = counts.firstIndex { $0.progress == progress }
      if known == nil { counts.append(Count(progress: progress)) }
      let index = known ?? counts.count - 1
      counts[index].members += change
      if counts[index].members == 0 { counts.remove(at: index) }
    }

    func count(where isWanted: (ObserverProgress) -> Bool) -> Int {
      counts.reduce(0) { isWanted($1.progress) ? $0 + $1.members : $0 }
    }

    func contains(where isWanted: (ObserverProgress) -> Bool) -> Bool {
      counts.contains { isWanted($0.progress) }
    }
  }

  private struct Member: Sendable {
    let id: ObserverID
    var progress = ObserverProgress()
    /// Whether it was removed. Its place is kept until the next compaction, so that a removal moves no other member.
    var isRemoved = false
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
    groups[position].members.append(Member(id: id))
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

  /// The number of places, including those of removed members.
  var placesForTesting: Int { groups.reduce(0) { $0 + $1.members.count } }

  /// The progress of a member, if it is still there.
  subscript(id: ObserverID) -> ObserverProgress? {
    place(of: id).map { groups[$0.group].members[$0.index].progress }
  }

  /// Returns the members that satisfy a condition, in order or in reverse. They are searched from the end, where late
  /// members are, until all are found.
  func ids(
    where isWanted: (ObserverProgress) -> Bool, reversed isReversed: Bool = false
  ) -> [ObserverID] {
    let count = counts.count(where: isWanted)
    var ids: [ObserverID] = []
    ids.reserveCapacity(count)
    for group in groups.reversed() {
      for member in group.members.reversed() {
        if ids.count == count { break }
        if !member.isRemoved, isWanted(member.progress) { ids.append(member.id) }
      }
    }
    if !isReversed { ids.reverse() }
    return ids
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
