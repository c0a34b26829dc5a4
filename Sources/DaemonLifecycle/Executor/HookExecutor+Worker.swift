// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

// The life of a thread: it runs items, parks, leads, and ends.
extension HookExecutor {
  /// A thread of the executor.
  final class Worker: Sendable {
    /// The semaphore on which a parked worker waits until `role` is set.
    let parking = Semaphore()
    /// The number of items that have ended: an unchanged number means that the same item still runs.
    let itemsEnded = Atomic<Int>(0)
    /// The thread (pthread_self(3)); 0 until it runs. Written once, by the thread itself, under the executor's lock and
    /// before its first item; so that thread, and any that has a reference to one of its items, may read it without.
    nonisolated(unsafe) fileprivate(set) var thread: UInt = 0
    /// The role of a parked or new worker; `nil` to go on waiting, or to determine it itself. Guarded by the executor's
    /// lock.
    nonisolated(unsafe) var role: Role?
    /// The ready descriptors, kept so that listening allocates nothing. Used by the worker's own thread only.
    nonisolated(unsafe) let found = EventPoll.Ready()
    /// `itemsEnded` at the last stall check in this item; `nil` when there was none. Guarded by the executor's lock.
    nonisolated(unsafe) var itemsEndedAtCheck: Int?
    /// Whether it was in the same item at the last two checks. Guarded by the executor's lock.
    nonisolated(unsafe) var isStalled = false
  }

  enum Role {
    case lead
    case run(WorkItem)
    /// Park; if not `mayEnd`, as a worker that always stays.
    case park(mayEnd: Bool)
    case end
  }

  /// The body of a thread.
  func work(_ me: Worker) {
    let first = state.withLock { _ in
      me.thread = clinux_this_thread()
      return me.role.take()
    }
    var role = first ?? nextRole(me)
    while true {
      switch role {
      case .lead: role = lead(me)
      case .run(let item):
        Self.perform(item)
        me.itemsEnded.add(1, ordering: .releasing)
        role = nextRole(me)
      case .park(let mayEnd): role = park(me, mayEnd: mayEnd)
      case .end: return
      }
    }
  }

  /// - Parameter serial: Of an exploration, whose jobs may not leave it for an actor.
  static func perform(_ item: WorkItem, isolatedTo serial: UnownedSerialExecutor? = nil) {
    switch item {
    case .job(let job, let executor, _):
      // The runtime keeps an unowned reference while the job runs.
      withExtendedLifetime(executor) { job.runSynchronously(on: executor.asUnownedTaskExecutor()) }
    case .step(let job, let driver, _):
      if let serial {
        job.runSynchronously(isolatedTo: serial, taskExecutor: driver.asUnownedTaskExecutor())
      } else {
        job.runSynchronously(on: driver.asUnownedTaskExecutor())
      }
      driver.jobReturned()
    case .work(let work): work()
    }
  }

  static func markRunning(_ worker: Worker, _ state: inout State) {
    worker.isStalled = false
    worker.itemsEndedAtCheck = nil
    state.running.append(worker)
  }

  /// Returns a worker's next role, after an item or at its start. It also removes the worker from the runners, in one
  /// step, so that an enqueuing thread sees either a runner or a parked worker.
  ///
  /// A free runner will take the items. Otherwise extra threads would compete for the processors and the lock on a busy
  /// machine.
  func nextRole(_ me: Worker) -> Role {
    state.withLock { state in
      state.markStopped(me)
      if !state.hasFreeRunner || state.isClosed, let item = state.ready.popInTurn() {
        Self.markRunning(me, &state)
        return .run(item)
      }
      if state.isClosed {
        state.threads -= 1
        return .end
      }
      if state.leader == nil {
        state.leader = me
        return .lead
      }
      state.parked.append(me)
      return .park(mayEnd: endsWhenIdle || state.parked.count > 2)
    }
  }

  private func park(_ me: Worker, mayEnd: Bool) -> Role {
    if !mayEnd { me.parking.wait() }
    while mayEnd, !me.parking.wait(for: .seconds(Self.parkingSeconds)) {
      let ends = state.withLock { state in
        // Otherwise it has just been given a role, and the signal is on its way.
        guard me.role == nil else { return false }
        state.parked.removeAll { $0 === me }
        state.threads -= 1
        return true
      }
      if ends { return .end }
    }
    // A role is always given before the signal.
    return state.withLock { _ in me.role.take()! }
  }
}
