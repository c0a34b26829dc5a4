// SPDX-License-Identifier: Apache-2.0
/// The only table of observers, with the notifications that each has received. One is in it from its addition to its
/// removal, or the daemon's end.
///
/// Their order is that in which they are notified on the way up: by phase, then by id, which grows with each addition.
/// Adding, finding and removing take constant time, and so does finding one of the few that are behind the others.
struct LifecycleMembers: Sendable {
  /// The notifications that a member has received; an earlier one that waits for the launch may be behind later ones.
  struct ObserverProgress: Equatable, Sendable {
    /// The state that it was notified of: `.launching` until the launch, `.foreground` until it is paused. It is above the
    /// registry's own state only during a step, or if the observer was busy in a pause.
    var reachedState = LifecycleState.launching
    /// Whether it has a hook that was abandoned and has not ended: it receives the steps that it missed afterwards.
    var isBusy = false
    /// Whether it received WillSleep, so that it will receive DidWakeUp.
    var isAsleep = false
    /// Its part in the steps of work that runs throughout.
    var work = WorkState.none
    /// Whether its launch failed: it receives nothing more, above all no ShouldSaveState, since it did not restore its
    /// state.
    var launchFailed = false

    enum WorkState: Sendable {
      case none
      /// It begins when all have finished launching.
      case waiting
      case begun
    }

    /// Whether it should receive a step with this change. Changes of state apply only to members in the preceding
    /// state. A member that was not notified of the launch has nothing to pause, save or close.
    func shouldReceive(_ change: NotificationKind.Change) -> Bool {
      switch change {
      case .state(_, let earlier):
        reachedState == earlier && (earlier != .launching || !launchFailed)
      // An observer that was busy when the others were paused, or resumed, may be free again by now.
      case .asleep(true): reachedState == .background && !isAsleep
      case .asleep(false): isAsleep
      case .work(let begins): work == (begins ? .waiting : .begun)
      case .nothing: reachedState != .launching
      }
    }
  }

  /// The number of members of each progress: nearly always one or two are there.
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
  }

  /// The members of one phase, sorted by id. The place of a removed member is kept until the next compaction, so that a
  /// removal moves no other.
  private struct Group: Sendable {
    let phase: LifecyclePhase
    var ids: [ObserverID] = []
    var removed = 0
  }

  /// Sorted by phase.
  private var groups: [Group] = []
  /// By the slot of their id; `nil`: free.
  private var observers: [Member?] = []
  /// By slot, too.
  private var progress: [ObserverProgress] = []
  private var free: [Int] = []
  private var counts = ProgressCounts()
  /// The slot that is checked next for a deallocated observer.
  private var cursor = 0

  var count: Int { observers.count - free.count }
  var all: [Member] { observers.compactMap { $0 } }

  subscript(id: ObserverID) -> Member? {
    guard id.slot < observers.count, let observer = observers[id.slot], observer.id == id else {
      return nil
    }
    return observer
  }

  /// The progress of a member, if it is still there.
  func progress(of id: ObserverID) -> ObserverProgress? {
    self[id] == nil ? nil : progress[id.slot]
  }

  /// An id for the next observer, which is to be added at once.
  func nextID(_ value: UInt64) -> ObserverID {
    ObserverID(value: value, slot: free.last ?? observers.endIndex)
  }

  /// Adds an observer, whose id is the next one.
  mutating func add(_ observer: Member) {
    if observer.id.slot == observers.endIndex {
      observers.append(observer)
      progress.append(ObserverProgress())
    } else {
      free.removeLast()
      observers[observer.id.slot] = observer
      progress[observer.id.slot] = ObserverProgress()
    }
    counts.add(1, of: ObserverProgress())
    let position = groups.firstIndex { !($0.phase < observer.phase) } ?? groups.endIndex
    if position == groups.endIndex || observer.phase < groups[position].phase {
      groups.insert(Group(phase: observer.phase), at: position)
    }
    groups[position].ids.append(observer.id)
  }

  mutating func remove(_ id: ObserverID) -> Member? {
    guard let observer = self[id],
      let position = groups.firstIndex(where: { $0.phase.isSame(as: observer.phase) })
    else { return nil }
    observers[id.slot] = nil
    free.append(id.slot)
    counts.add(-1, of: progress[id.slot])
    groups[position].removed += 1
    let (removed, all) = (groups[position].removed, groups[position].ids.count)
    if removed == all {
      groups.remove(at: position)
    } else if removed > 32, removed > all / 2 {
      groups[position].ids = groups[position].ids.filter { self[$0] != nil }
      groups[position].removed = 0
    }
    return observer
  }

  mutating func removeAll() -> [Member] {
    defer { self = LifecycleMembers() }
    return all
  }

  /// Changes the progress of a member, if it is still there.
  mutating func update(_ id: ObserverID, _ change: (inout ObserverProgress) -> Void) {
    guard let old = progress(of: id) else { return }
    change(&progress[id.slot])
    let new = progress[id.slot]
    guard new != old else { return }
    counts.add(-1, of: old)
    counts.add(1, of: new)
  }

  func contains(where isWanted: (ObserverProgress) -> Bool) -> Bool {
    counts.count(where: isWanted) > 0
  }

  /// Whether a member that was launched has a hook for a step.
  func receive(_ step: LifecycleStep) -> Bool {
    observers.indices.contains {
      progress[$0].reachedState != .launching && observers[$0]?.receives(step) == true
    }
  }

  /// The number of places, including those of removed members.
  var placesForTesting: Int { groups.reduce(0) { $0 + $1.ids.count } }

  /// Returns the members that satisfy a condition, in order or in reverse. They are searched from the end, where late
  /// members are, until all are found.
  func ids(
    where isWanted: (ObserverProgress) -> Bool, reversed isReversed: Bool = false
  ) -> [ObserverID] {
    let count = counts.count(where: isWanted)
    var ids: [ObserverID] = []
    ids.reserveCapacity(count)
    for group in groups.reversed() {
      for id in group.ids.reversed() {
        if ids.count == count { break }
        if self[id] != nil, isWanted(progress[id.slot]) { ids.append(id) }
      }
    }
    if !isReversed { ids.reverse() }
    return ids
  }

  /// Returns the next observer to check for whether it was deallocated. Each addition checks two, so that never more than
  /// half are.
  mutating func candidate() -> Member? {
    guard !observers.isEmpty else { return nil }
    cursor = cursor + 1 < observers.count ? cursor + 1 : 0
    return observers[cursor]
  }
}
