import CLinux
import DaemonSystemd
import Synchronization

// What the leader does: it listens, runs what is short itself, and gives a thread to what is not; and what its deputy does.
extension HookExecutor {
  /// What the leader does next.
  private enum Decision {
    case listen(Int32)
    /// It runs the item itself, and leads on.
    case run(Item)
    /// As a runner: another thread leads from now on.
    case handedOver(Item)
    /// The same, once there is another thread.
    case spawn(Item)
    /// Somebody else leads already.
    case relieved
    /// With the number of items that need threads beside this one.
    case end(Int)
  }

  /// Listens and runs items until another thread leads.
  func lead(_ me: Worker) -> Role {
    client?.listenerChanged()
    while true {
      switch state.withLock({ decide(me, &$0) }) {
      case .listen(let milliseconds): listenOnce(milliseconds)
      case .run(let item):
        me.isLeading = false
        run(item, me)
        me.isLeading = true
      case .relieved:
        me.isLeading = false
        return nextRole(me)
      case .end(let extra):
        me.isLeading = false
        for _ in 0..<extra where !spawnWorker(.park) { giveUpSpawning { _ in } }
        return nextRole(me)
      case .handedOver(let item):
        me.isLeading = false
        return .run(item)
      case .spawn(let item):
        me.isLeading = false
        if spawnWorker(.lead) { return .run(item) }
        // No thread left: keep the lead, so that deadlines, reports and exit go on; try again soon.
        me.isLeading = true
        giveUpSpawning { state in
          state.running.removeAll { $0 === me }
          state.ready.prepend(item)
          state.couldNotSpawn = true
        }
      }
    }
  }

  private func decide(_ me: Worker, _ state: inout State) -> Decision {
    // After an item of its own.
    if let index = state.running.firstIndex(where: { $0 === me }) {
      guard state.busyLeader?.worker === me else { return .relieved }
      state.running.remove(at: index)
    }
    if state.isClosed {
      state.hasLeader = false
      state.busyLeader = nil
      // One of the items is for this thread; nobody will look for stalls among the others.
      let extra = max(0, state.ready.count - 1)
      state.threads += extra
      return .end(extra)
    }
    lookForStalls(&state)
    guard state.itemsInARow < Self.mostItemsInARow else { return .listen(look(&state)) }
    guard mayRun(&state), let item = state.ready.popFirst() else { return .listen(rest(&state)) }
    Self.run(me, &state)
    if standIn(me, &state) { return .run(item) }
    state.busyLeader = nil
    if let successor = takeFollower(&state) {
      give(successor, .lead, &state)
      return .handedOver(item)
    }
    state.threads += 1
    return .spawn(item)
  }

  /// Whether the leader may run an item itself, because the deputy looks after it.
  private func standIn(_ me: Worker, _ state: inout State) -> Bool {
    guard state.deputy != nil else { return false }
    if state.busyLeader == nil {
      guard alarm.set(after: patience) else {
        unseatDeputy(&state)
        return false
      }
      // Of the item that it is about to begin.
      state.busyLeader = (me, me.sequence.load(ordering: .relaxed) + 1)
    }
    state.leaderSleeps = false
    state.itemsInARow += 1
    return true
  }

  /// For how long the leader may listen. With a free runner, or an item that waits for a thread, it looks again soon.
  private func rest(_ state: inout State) -> Int32 {
    state.itemsInARow = 0
    if state.busyLeader != nil {
      state.busyLeader = nil
      if state.deputy != nil { alarm.clear() }
    }
    state.couldNotSpawn = false
    state.leaderSleeps = !state.hasFreeRunner && state.ready.isEmpty
    if state.leaderSleeps { return -1 }
    // Whether runners block need not be known as long as nothing waits for them; then the next item wakes us.
    return state.ready.isEmpty ? Self.lookMilliseconds * 5 : Self.lookMilliseconds
  }

  /// Without waiting: there may be more to run.
  private func look(_ state: inout State) -> Int32 {
    _ = rest(&state)
    state.leaderSleeps = false
    return 0
  }

  private func mayRun(_ state: inout State) -> Bool {
    guard !state.couldNotSpawn, !state.ready.isEmpty else { return false }
    if state.hasFreeRunner {
      guard state.allowance > 0, state.ready.hasUrgent else { return false }
      state.allowance -= 1
      return true
    }
    let bound =
      unfinishedHooks.load(ordering: .relaxed) + busyLanes.load(ordering: .relaxed) + 2
    if !state.parked.isEmpty || state.ready.hasUrgent || state.threads < bound {
      state.waitingSince = nil
      return true
    }
    let now = MonotonicTime.now()
    let since = state.waitingSince ?? now
    let mayExceed =
      state.threads < bound + Self.spareThreads && since.duration(to: now) >= Self.spareTime
    state.waitingSince = mayExceed ? nil : since
    return mayExceed
  }

  private func lookForStalls(_ state: inout State) {
    guard state.hasFreeRunner else { return }
    let now = MonotonicTime.now()
    guard state.lastLook.duration(to: now) >= Self.stallTime else { return }
    state.lastLook = now
    for worker in state.running {
      let sequence = worker.sequence.load(ordering: .acquiring)
      worker.isStalled = worker.seen == sequence
      worker.seen = sequence
    }
    state.allowance = Self.growth * state.running.count { $0.isStalled }
  }

  private func listenOnce(_ milliseconds: Int32) {
    let isWatchful = isWatchful
    let ready = poll.wait(
      milliseconds: isWatchful ? Self.shorter(milliseconds, Self.watchMilliseconds) : milliseconds)
    if ready.isLost || isWatchful { seeToLoss() }
    guard let client else { return }
    if !ready.descriptors.isEmpty { client.descriptorsAreReady(ready.descriptors) }
    if ready.timerExpired { client.timerExpired() }
  }

  // MARK: The deputy

  /// Waits until the leader has been in one item for too long, or a role is given.
  func standBy(_ me: Worker) -> Role {
    while true {
      let isWell = alarm.wait(watching: poll.waker)
      if !isWell { poll.waker.reportLoss() }
      let role: Role? = state.withLock { state in
        if let role = me.role.take() {
          state.wakingDeputy = nil
          alarm.clear()
          return role
        }
        guard state.deputy === me else { return .park }  // unseated
        guard alarm.clear() else {
          let isNeeded = state.busyLeader != nil
          unseatDeputy(&state)
          return isNeeded ? .lead : .park
        }
        return relieve(me, &state) ? .lead : nil
      }
      switch role {
      case .park: return nextRole(me)
      case .lead:
        me.isLeading = true
        return .lead
      case .some(let role): return role
      // Until the leader has seen to it, the next wait ends at once too.
      case nil: if !isWell { CLinux.poll(nil, 0, 10) }
      }
    }
  }

  /// The alarm has gone off: whether the deputy leads now, since the leader is still where it was.
  private func relieve(_ me: Worker, _ state: inout State) -> Bool {
    guard let leader = state.busyLeader else { return false }
    let sequence = leader.worker.sequence.load(ordering: .acquiring)
    if sequence != leader.seen, alarm.set(after: patience) {
      state.busyLeader.update { $0.seen = sequence }
      return false
    }
    state.busyLeader = nil
    state.deputy = nil
    return true
  }

  /// Its alarm is gone, so it would hear nothing any more: it gets a new one, and stands by again once it has woken.
  func unseatDeputy(_ state: inout State) {
    let deputy = state.deputy.take()
    state.busyLeader = nil
    alarm.reopen()
    if let deputy, deputy !== Worker.current { clinux_nudge(deputy.thread) }
  }
}
