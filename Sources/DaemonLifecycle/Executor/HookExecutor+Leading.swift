// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// The leader: it listens, gives ready items a thread, and checks which threads are blocked.
extension HookExecutor {
  private enum Decision {
    /// Listen, for at most this many milliseconds; -1 for no limit.
    case listen(Int32)
    /// Run the item; the parked successor leads from now on.
    case handOver(to: Worker, thenRun: WorkItem)
    /// Start a thread for the item.
    case start(Worker, for: WorkItem)
    /// End, since the executor is closed, after starting threads for other ready items.
    case end([Worker])
  }

  /// Listens until another thread leads.
  func lead(_ me: Worker) -> Role {
    client?.listenerChanged()
    while true {
      switch state.withLock({ decide(me, &$0) }) {
      case .listen(let milliseconds):
        if !endsWhenIdle {
          poll.wait(milliseconds: milliseconds, me.found)
          client?.descriptorsAreReady(me.found)
        } else if !waitForBell(milliseconds: milliseconds), state.withLock({ leave(me, &$0) }) {
          return .end
        }
      case .handOver(let successor, let item):
        successor.parking.signal()
        return .run(item)
      case .start(let worker, let item):
        start(worker) { state in
          state.markStopped(worker)
          state.ready.prepend(item)
          state.couldNotSpawn = true
        }
      case .end(let workers):
        for worker in workers { start(worker) }
        return nextRole(me)
      }
    }
  }

  private func decide(_ me: Worker, _ state: inout State) -> Decision {
    if state.isClosed {
      state.leader = nil
      // This thread takes one of the items; no thread will check for stalls among the others.
      return .end((1..<max(1, state.ready.count)).map { _ in addThread(&state) })
    }
    checkForStalls(&state)
    guard mayStartItem(&state), let item = state.ready.popFirst() else {
      return .listen(prepareToListen(&state))
    }
    guard let successor = state.parked.popLast() else {
      let worker = addThread(&state)
      worker.role = .run(item)
      Self.markRunning(worker, &state)
      return .start(worker, for: item)
    }
    Self.markRunning(me, &state)
    successor.role = .lead
    state.leader = successor
    state.leaderSleeps = false
    return .handOver(to: successor, thenRun: item)
  }

  /// Returns how many milliseconds the leader may listen before the next stall check.
  private func prepareToListen(_ state: inout State) -> Int32 {
    state.couldNotSpawn = false
    state.leaderSleeps = !state.hasFreeRunner && state.ready.isEmpty
    if state.leaderSleeps { return -1 }
    // Until an item waits for a runner that blocks, the check may take its time.
    return state.ready.isEmpty ? Self.stallCheckMilliseconds * 5 : Self.stallCheckMilliseconds
  }

  /// Gives up the lead. Returns false when there is something to do after all.
  private func leave(_ me: Worker, _ state: inout State) -> Bool {
    // A parked worker would take items, and nobody would check for stalls.
    guard state.ready.isEmpty, state.running.isEmpty, state.parked.isEmpty, !state.isClosed
    else { return false }
    state.leader = nil
    state.threads -= 1
    return true
  }

  /// Waits where only items can arrive. Returns false when none did for as long as an idle thread stays.
  private func waitForBell(milliseconds: Int32) -> Bool {
    let isIdle = milliseconds < 0
    let rang = bell.wait(
      for: isIdle ? .seconds(Self.parkingSeconds) : .milliseconds(milliseconds))
    return rang || !isIdle
  }

  // MARK: Number of threads

  /// Whether the next ready item gets a thread now.
  func mayStartItem(_ state: inout State) -> Bool {
    guard !state.couldNotSpawn, !state.ready.isEmpty else { return false }
    let busy = busySerialExecutors.load(ordering: .relaxed)
    let room =
      abandonedHooks.load(ordering: .relaxed) + busy + 2 + Self.extraThreads - state.threads
    if state.hasFreeRunner {
      guard state.spawnQuota > 0, state.ready.hasUrgent, !state.parked.isEmpty || room > 0
      else { return false }
      state.spawnQuota -= 1
      return true
    }
    if state.parked.isEmpty, room <= 0 {
      if !state.hasReachedLimit {
        state.hasReachedLimit = true
        state.ready.append(.work { [weak client] in client?.threadsReachedLimit() })
      }
      return false
    }
    let bound = unfinishedHooks.load(ordering: .relaxed) + busy + 2
    if !state.parked.isEmpty || state.ready.hasUrgent || state.threads < bound {
      state.waitingSince = nil
      return true
    }
    let now = MonotonicTime.now()
    let since = state.waitingSince ?? now
    // The last half is for urgent items.
    let mayExceed = room > Self.extraThreads / 2 && since.duration(to: now) >= Self.spareTime
    state.waitingSince = mayExceed ? nil : since
    return mayExceed
  }

  private func checkForStalls(_ state: inout State) {
    guard state.hasFreeRunner else { return }
    let now = MonotonicTime.now()
    guard state.lastStallCheck.duration(to: now) >= Self.stallTime else { return }
    state.lastStallCheck = now
    for worker in state.running {
      let itemsEnded = worker.itemsEnded.load(ordering: .acquiring)
      worker.isStalled = worker.itemsEndedAtCheck == itemsEnded
      worker.itemsEndedAtCheck = itemsEnded
    }
    state.spawnQuota = Self.spawnsPerStall * state.running.count { $0.isStalled }
  }
}
