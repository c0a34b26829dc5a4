// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

@testable import DaemonLifecycle

// What a state of the machine is, for an explorer: all that decides what it does next. Times are what is left until then,
// and numbers that only grow are left out.
extension LifecycleMachine {
  /// The machine is noncopyable, so that none is copied by accident.
  func copy() -> LifecycleMachine {
    var copy = LifecycleMachine(policy)
    copy.registry = registry
    copy.calls = calls
    copy.stop = stop
    copy.sleep = sleep
    copy.health = health
    copy.works = works
    copy.workFailure = workFailure
    copy.unentered = unentered
    return copy
  }

  func add(to key: inout StateKey, at now: MonotonicTime) {
    registry.add(to: &key)
    addCalls(to: &key, at: now)
    addStop(to: &key, at: now)
    key.add(sleep.isMachineWaiting)
    key.add(sleep.end.map { left(until: $0, from: now) } ?? -1)
    key.add(sleep.budget.map { left(until: $0.end, from: now) } ?? -1)
    key.add(health.isChecking)
    key.add(workFailure == nil)
    for work in works.all { add(work, to: &key, at: now) }
    for ids in [unentered.failed, unentered.held, unentered.absent] {
      for id in ids.sorted() { key.add(Int(id.value)) }
      key.add(-1)
    }
    key.add(left(until: unentered.deadline, from: now))
    key.add(Int(unentered.pause.components.seconds))
    key.add(unentered.isAnnounced)
    key.add(unentered.isRetrying)
    key.add(unentered.hasNews)
  }

  private func left(until time: MonotonicTime, from now: MonotonicTime) -> Int {
    time == .distantFuture ? -2 : max(-1, Int(now.duration(to: time) / .milliseconds(1)))
  }

  private func add(_ work: Work, to key: inout StateKey, at now: MonotonicTime) {
    key.add(Int(work.id.value))
    switch work.state {
    case .resting: key.add(0)
    case .running(let run):
      key.add(1)
      key.add(run.isReady)
      key.add(run.isStalled)
    case .waiting: key.add(2)
    case .returned: key.add(3)
    case .finishing: key.add(4)
    case .cancelled: key.add(5)
    case .over: key.add(7)
    case .failing(let run, _):
      key.add(8)
      key.add(run.isStalled)
    }
    key.add(left(until: work.deadline, from: now))
    key.add(work.entering != nil)
    key.add(work.leaving != nil)
    key.add(work.lastFailure?.number ?? 0)
    key.add(work.lastFailure?.isShown == true)
    key.add(work.isStarting)
    key.add(work.isClosed)
    key.add(work.isCallerCancelled)
  }

  private func addStop(to key: inout StateKey, at now: MonotonicTime) {
    switch stop.phase {
    case .serving: key.add(0)
    case .draining(let event, let end):
      key.add(1)
      key.add(event.cause.hashKey)
      key.add(left(until: end, from: now))
    case .stopping: key.add(2)
    case .ended: key.add(3)
    }
    key.add(left(until: stop.exitDeadline, from: now))
    key.add(stop.isExitExpected)
    key.add(stop.failedLaunch?.severity ?? -1)
    key.add(stop.overtakenPause?.severity ?? -1)
    guard let budget = stop.budget else { return key.add(-1) }
    key.add(left(until: budget.end, from: now))
    key.add(left(until: budget.endBeforeSaves, from: now))
    key.add(budget.isHurried)
  }

  private func addCalls(to key: inout StateKey, at now: MonotonicTime) {
    key.add(calls.deliveryIDs.count)
    for id in calls.deliveryIDs {
      let delivery = calls[id]
      key.add(delivery.step.hashKey)
      key.add(delivery.cause.hashKey)
      key.add(delivery.isNested)
      key.add(delivery.budgetStep.hashKey)
      key.add(delivery.isOfTermination)
      key.add(delivery.nextCall)
      key.add(delivery.post == nil)
      key.add(delivery.outer.map { left(until: $0.deadline, from: now) } ?? -3)
      key.add(left(until: delivery.earliest, from: now))
      key.add(left(until: delivery.turnEnd, from: now))
      for planned in delivery.waiting { key.add(Int(planned.observer.value) * 64 + planned.hook) }
      for entry in delivery.entries { key.add(entry.outcome.severity) }
      for call in delivery.running {
        add(call, to: &key, at: now)
        key.add(calls[call].turn == delivery.turn)
      }
    }
    let unfinished = calls.unfinished.sorted { $0.key.value < $1.key.value }
    for call in unfinished.flatMap(\.value) { add(call, to: &key, at: now) }
  }

  private func add(_ id: CallID, to key: inout StateKey, at now: MonotonicTime) {
    guard let call = calls.find(id) else { return }
    key.add(Int(call.observer.value))
    key.add(call.step.hashKey)
    switch call.progress {
    case .enqueued: key.add(0)
    case .entering: key.add(1)
    case .begun: key.add(2)
    }
    switch call.limit {
    case .deadline: key.add(0)
    case .cancelled: key.add(1)
    case .abandoned: return key.add(2)
    }
    key.add(left(until: call.next, from: now))
    key.add(Int(call.grace / .milliseconds(1)))
  }
}

extension LifecycleRegistry {
  func add(to key: inout StateKey) {
    key.add(state.hashKey)
    key.add(backgroundReasons.contains(.operator))
    key.add(backgroundReasons.contains(.sleep))
    for bit in [isAsleep, isHeld, wantsSleep] { key.add(bit) }
    key.add(termination?.hashKey ?? -1)
    key.add(min(3, terminationSignals))
    key.add(transition != nil)
    if let transition {
      key.add(transition.kind.rawValue)
      key.add(transition.cause.hashKey)
      key.add(transition.left.count)
      for step in transition.left { key.add(step.hashKey) }
      key.add(transition.isOvertaken)
      key.add(transition.entries.map(\.outcome.severity).max() ?? -1)
    }
    addRequests(to: &key)
    for id in Set(reentering).sorted() { key.add(Int(id.value)) }
    for id in members.ids(where: { _ in true }) {
      guard let progress = members.progress(of: id) else { continue }
      key.add(Int(id.value))
      key.add(progress.reachedState.hashKey)
      for bit in [progress.isBusy, progress.isAsleep, progress.launchFailed] { key.add(bit) }
      key.add(progress.work == .none ? 0 : progress.work == .waiting ? 1 : 2)
    }
  }

  /// In the order in which they would be taken.
  private func addRequests(to key: inout StateKey) {
    var left = requests
    key.add(left.launch != nil)
    while let request = left.takeNext()?.request {
      key.add(request.transition?.rawValue ?? (request.concernsState ? -1 : -2))
    }
  }
}

extension LifecycleState {
  fileprivate var hashKey: Int {
    switch self {
    case .launching: 0
    case .background: 1
    case .foreground: 2
    case .terminated: 3
    }
  }
}

extension LifecycleCause {
  /// What is decided by: the end of a launch, a late observer, a signal.
  fileprivate var hashKey: Int {
    switch origin {
    case .launch: 0
    case .lateObserver: 1
    case .signal: 2
    case .launchFailed: 3
    case .workFailed: 4
    default: 5
    }
  }
}

extension LifecycleStep {
  fileprivate var hashKey: Int {
    switch self {
    case .workBegins: 1
    case .workEnds: 2
    case .posted(let post): ObjectIdentifier(post).hashValue
    default: type.map { ObjectIdentifier($0).hashValue } ?? 0
    }
  }
}
