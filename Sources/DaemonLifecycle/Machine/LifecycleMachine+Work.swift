// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Work: its rules are applied here, with the calls that wait for it.
extension LifecycleMachine {
  /// What happens to a work, whose body the shell runs.
  enum WorkInput: Sendable {
    /// `lack`: why it is not ready; `nil` where it is. A change before the last one is ignored.
    case readiness(run: UInt64, lack: String?, change: UInt64)
    /// `share`: the part of a restart's delay to wait for.
    case ended(run: UInt64, Failure?, share: Double = 1)
    /// When it last made progress, and last waited for its next job; `nil`: never.
    case progressed(run: UInt64, at: MonotonicTime?, waited: MonotonicTime? = nil)
    case callerCancelled
  }

  mutating func take(_ input: WorkInput, of id: ObserverID) {
    guard let work = works[id] else { return }
    switch input {
    case .readiness(let run, let lack, let change): readinessChanged(run, lack, change, of: work)
    case .ended(let run, let failure, let share): ended(run, failure, share, of: work)
    case .progressed(let run, let time, let waited):
      let idle = work.options.mayIdle ? waited : nil
      take(
        works[known: id].progressed(run, at: [time, idle].compactMap(\.self).max(), now: now),
        of: id)
    case .callerCancelled:
      works[known: id].isCallerCancelled = true
      request(works[known: id].close(), of: id)
      // In a stop it does not wait for a body that has had its time.
      let isOverdue = work.leaving.flatMap { calls.find($0) }?.isCancelled == true
      if isOverdue, isTerminating { answer(id) }
      settle(id)
    }
    if works[id]?.isForgotten == true { removeWork(id) }
  }

  private mutating func request(_ action: Work.Action?, of id: ObserverID) {
    if let action { effects.works.append((id, works[id]?.options.runner, action)) }
  }

  /// Publishes the state of a work.
  ///
  /// - Parameter isNews: Whether there is another reason why it is not ready.
  private mutating func settle(
    _ id: ObserverID, _ cause: LifecycleCause? = nil, isNews: Bool = false
  ) {
    guard let work = works[id] else { return }
    if work.note != work.published {
      works[known: id].published = work.note
      effects.publish(.statusNote(.work("\(work.name)", id.value), work.note))
    }
    // Its failures no longer count.
    if work.hasFailed != (work.lastFailure != nil) {
      works[known: id].hasFailed.toggle()
      if work.hasFailed { publish(.recovered) }
    }
    guard unentered.set(id, isAbsent: !work.isReady) || isNews else { return }
    if registry.isServing { unentered.hasNews = true }
    settleForeground(cause)
  }

  // MARK: Calls

  /// Has a work begin or end with a step. A call waits for that, as for a hook, if there is anything to wait for.
  mutating func beginWork(
    _ member: Member, in id: DeliveryID, _ constants: Delivery.Constants, _ time: CallTime
  ) {
    let (begins, observer) = (constants.step.beginsWork, member.id)
    // Its caller has gone on.
    if works[observer] == nil { return }
    // Work that begins late is not retried, so no step waits for it.
    let isAwaited = constants.step.kind != nil || registry.isLaunchTransition
    var failure = begins ? nil : works[known: observer].failure
    let (action, waits) =
      begins
      ? works[known: observer].enter(at: now, isAwaited: isAwaited) : works[known: observer].leave()
    request(action, of: observer)
    if waits {
      let call = calls.begin(
        Call(of: constants, in: id, member, began: now, time: time, progress: .begun))
      if begins {
        works[known: observer].entering = call
      } else {
        works[known: observer].leaving = call
      }
    } else {
      failure.update { $0.isLate = true }
      calls[id].record(
        failure.map { .failed($0.error) } ?? .completed, of: member.name, observer,
        began: now, failure: failure)
      if begins { unentered.remove([observer]) }
    }
    settle(observer)
  }

  /// A call is cancelled at its deadline. A start is not waited for any longer, and goes on; an end cancels the body.
  mutating func cancelWork(_ id: CallID, of observer: ObserverID, begins: Bool) {
    if works[observer] == nil { return }
    if !begins { return cancelWork(observer) }
    works[known: observer].entering = nil
    endedWorkStarts.append(id)
  }

  /// Ends the calls of starts that were cancelled, when no loop over the deliveries is under way.
  mutating func endWorkStarts() {
    while let id = endedWorkStarts.popLast() {
      // An error that it has thrown meanwhile says why it was not ready in time.
      let failure = calls.find(id).flatMap {
        $0.isCancelled ? works[$0.observer]?.lastFailure?.failure : nil
      }
      ended(id, failure.map { .failed($0) } ?? .completed)
    }
  }

  private mutating func endStart(of id: ObserverID, _ end: CallEnd = .completed) {
    if let call = works[known: id].entering.take() { ended(call, end) }
  }

  /// Also after its start was abandoned, as with an observer's hook.
  private mutating func readinessChanged(
    _ run: UInt64, _ lack: String?, _ change: UInt64, of work: Work
  ) {
    guard works[known: work.id].readinessChanged(run, lack, change, at: now) else { return }
    if lack != nil {
      return settle(work.id, LifecycleCause(.other("\(work.name) is not ready")), isNews: true)
    }
    noteEntered(work, LifecycleCause(.other("\(work.name) is ready")))
    endStart(of: work.id)
  }

  /// It works as intended, perhaps after its start was abandoned.
  private mutating func noteEntered(_ work: Work, _ cause: LifecycleCause) {
    if !registry.isLaunchTransition { unentered.remove([work.id]) }
    settle(work.id, cause)
    settleForeground(cause)
  }

  // MARK: Ends

  private mutating func ended(
    _ run: UInt64, _ failure: Failure?, _ share: Double, of work: Work
  ) {
    // What returns in a drain has done what it was to do, as in the rest of the stop.
    let (id, isStopping) = (work.id, isTerminating || failure == nil && stop.isDraining)
    switch works[known: id].ended(run, failure, share: share, isStopping: isStopping, at: now) {
    case .earlier: break
    case .asked(let failure): endedAsAsked(work, failure)
    case .returned: returned(work, isStopping: isStopping)
    case .notReady(let failure): failedToStart(work, failure)
    case .restarts(let failure, let line):
      effects.publish(.warning(line))
      settle(id, LifecycleCause(failure, of: "\(work.name)"))
    case .failed(let failure):
      if !work.options.hasCaller { workFailed(failure, of: work) }
    }
  }

  private mutating func endedAsAsked(_ work: Work, _ failure: Failure?) {
    settle(work.id)
    endStart(of: work.id)
    var failure = failure
    failure.update { $0.isLate = true }
    if let leaving = works[known: work.id].leaving.take() {
      ended(leaving, failure.map { .failed($0) } ?? .completed)
    } else if let failure, works[work.id]?.failure == nil {
      // No call waits for it, as in a stop after a second signal.
      effects.publish(.warning("\(work.name) failed while it ended: \(failure.text)"))
    }
  }

  private mutating func returned(_ work: Work, isStopping: Bool) {
    if !work.options.mayReturn, !isStopping {
      let isRunAgain = work.options.form == .foreground
      let next = isRunAgain ? "It is run again after the next resume." : "It is not run again."
      effects.publish(.info("\(work.name) has ended by itself. \(next)"))
    }
    noteEntered(work, LifecycleCause(.other("\(work.name) has ended by itself")))
    endStart(of: work.id)
  }

  private mutating func failedToStart(_ work: Work, _ failure: Failure) {
    if work.entering != nil {
      endStart(of: work.id, .failed(failure))
    } else {
      effects.publish(.warning("\(work.name) failed before it was ready: \(failure.text)"))
      if registry.isServing { unentered.add(work.id) }
      settleForeground()
    }
    settle(work.id)
  }

  private mutating func workFailed(_ failure: Failure, of work: Work) {
    guard !isClosed else { return }
    workFailure = workFailure ?? failure
    receive(LifecycleEvent(.terminate, cause: LifecycleCause(failure, of: "\(work.name)")))
  }

  // MARK: Time

  mutating func workTimePassed() {
    let now = now
    for id in works.due(at: now) {
      take(works[known: id].timePassed(at: now), of: id)
    }
  }

  private mutating func take(_ news: Work.News?, of id: ObserverID) {
    guard let news, let name = works[id]?.name else { return }
    effects.publish(news.line)
    if news.isStall { effects.stalled = "\(name)" }
    request(news.action, of: id)
    settle(id)
  }

  /// Publishes a fact of the health; but not that the daemon has recovered while other work fails, which may end it.
  mutating func publish(_ fact: LifecycleFact?) {
    if case .recovered? = fact, works.haveFailed { return }
    effects.publish(fact)
  }

  /// The work that has stalled, in words; also work that should run, and can't since its last round does not end.
  var stalls: [String] {
    works.all.compactMap { work in
      if work.isStalled { return work.stall }
      let isKeptOut = registry.isServing && calls.unfinished[work.id] != nil
      return isKeptOut ? "\(work.name): its last round has not ended" : nil
    }
  }

  // MARK: The stop

  /// The stop begins: work that waits to be restarted is not, and work that a launch or a resume waits for is cancelled,
  /// since it has nothing to finish.
  mutating func haltWork() {
    for id in works.known {
      if works[known: id].isWaiting || works[known: id].isStarting { cancelWork(id) }
      if works[id]?.run == nil, let call = works[known: id].entering.take() {
        endedWorkStarts.append(call)
      }
      settle(id)
    }
  }

  @inline(never) mutating func cancelWork(_ id: ObserverID) {
    request(works[known: id].cancel(), of: id)
  }

  /// A second signal: work in the foreground is cancelled, also where its pause has not begun.
  mutating func revokeWork() {
    for id in works.known where works[id]?.options.form == .foreground { cancelWork(id) }
  }

  /// Ends all work, since the daemon has ended. Work that still runs is kept until it ends.
  mutating func closeWork() {
    for id in works.known {
      request(works[known: id].close(), of: id)
      if works[id]?.isForgotten == true { removeWork(id) }
    }
  }

  /// Has its caller go on, if that still waits.
  private mutating func answer(_ id: ObserverID) {
    if let work = works[id], work.options.hasCaller { request(.answer(work.failure), of: id) }
  }

  /// Forgets a work, with its note.
  mutating func removeWork(_ id: ObserverID) {
    answer(id)
    guard let work = works.remove(id) else { return }
    if let call = work.entering { endedWorkStarts.append(call) }
    _ = unentered.set(id, isAbsent: false)
    unentered.remove([id])
    if work.published != nil { effects.publish(.statusNote(.work("\(work.name)", id.value), nil)) }
  }
}
