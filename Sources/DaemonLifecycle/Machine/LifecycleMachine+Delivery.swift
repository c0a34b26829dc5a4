// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Delivery: from a step to its calls, and from their ends to its report.
extension LifecycleMachine {
  /// Begins steps until one has calls to wait for, or there is none.
  mutating func pump() {
    while !isClosed {
      if isTerminating { passOn() }
      if calls.current != nil { return }
      if let next = registry.next() {
        if registry.transition?.hasBegun == false { beginTransition(next.cause) }
        begin(next.step, next.cause, to: next.members)
      } else {
        guard let transition = registry.transition, transition.next == nil else { return }
        finishTransition()
      }
    }
  }

  /// Ends a delivery of a stop that waits only for calls that have had their turn. Only here, where the next delivery
  /// begins at once, so that these calls always are in one.
  private mutating func passOn() {
    guard let id = calls.current else { return }
    advance(id)
    if calls.contains(id), calls[id].waiting.isEmpty, calls[id].mayAdvance(at: now) { finish(id) }
  }

  /// Begins a delivery; one beside the transition under way has a frame.
  ///
  /// - Parameter members: `nil` for all that should receive it.
  mutating func begin(
    _ step: LifecycleStep, _ cause: LifecycleCause, to members: [ObserverID]? = nil,
    outer: Delivery.Outer? = nil
  ) {
    let members = members ?? registry.receivers(of: step)
    let planned = planCalls(of: step, to: members)
    let delivery = calls.open(
      Delivery.Constants(
        step, cause, calls: planned, outer: outer, isOfTermination: isTerminating, began: now))
    // In a retry each is removed when it has entered.
    if case .kind(.willEnterForeground) = step, registry.state != .foreground {
      unentered.remove(members)
    }
    if effects.announces { effects.messages.append(.announced(step, cause, at: now)) }
    if case .workEnds = step { awaitAgain(in: delivery) }
    // It may be waiting for calls that were left behind.
    if !calls[delivery].running.isEmpty { setTurn(of: delivery) }
    advance(delivery)
  }

  /// Calls left behind still run. They are waited for first, all together, before anything that they may need ends.
  private mutating func awaitAgain(in delivery: DeliveryID) {
    for id in calls.leftBehind {
      calls.takeBack(id, into: delivery, grace: policy.cancellationGrace)
      if let limit = limit(of: calls[id].step) { calls.update(id) { $0.limit(to: limit) } }
    }
  }

  /// Posts a notification. One that a hook posts is delivered at once: its step can't end before the hook, and the hook
  /// may wait for the post. A hook that has ended posts like any other caller.
  mutating func post(_ post: LifecyclePost, _ inside: CallID?) {
    guard !isClosed else { return effects.answer(post) }
    guard let inside, calls.isCurrent(inside), let outer = calls.find(inside) else {
      return receive(LifecycleEvent(.post(post.notification)), post: post)
    }
    let delivery = calls[outer.delivery]
    begin(
      .posted(post), delivery.cause,
      outer: .init(deadline: outer.deadline, budgetStep: delivery.budgetStep))
  }

  /// Delivers a post that waits, beside the transition under way: that may be the pause which has cancelled the poster, and
  /// which waits for it. Before the launch nobody would receive it.
  mutating func hasten(_ post: LifecyclePost) {
    guard !isClosed, registry.state != .launching, let cause = registry.requests.take(post) else {
      return
    }
    let step = LifecycleStep.posted(post)
    begin(step, cause, outer: .init(deadline: .distantFuture, budgetStep: step))
  }

  /// Plans the calls of the members that have a hook for the step. The others are reached at once.
  ///
  /// - Parameter isDryRun: Whether nobody is reached.
  mutating func planCalls(
    of step: LifecycleStep, to members: [ObserverID], isDryRun: Bool = false
  ) -> [Delivery.PlannedCall] {
    var planned: [Delivery.PlannedCall] = []
    let (type, change) = (step.type.map { ObjectIdentifier($0) }, step.change)
    planned.reserveCapacity(members.count)
    var last: LifecyclePhase?
    for id in members {
      guard let member = registry.members[id] else { continue }
      var hook = member.hook(for: type, step)
      if case .workEnds = step { hook = works[id]?.endsWithTheDaemon == true ? 0 : nil }
      if let hook {
        let isTogether = member.phase.isTogether(with: last)
        planned.append(.init(observer: id, hook: hook, isTogether: isTogether))
        last = member.phase
      } else if !isDryRun {
        registry.reached(id, change)
      }
    }
    return planned
  }

  // MARK: Calls

  /// Begins group after group until one has a call that runs, and its turn; ends the delivery after the last.
  mutating func advance(_ id: DeliveryID) {
    while calls.mayAdvance(id, at: now) {
      if isOvertaken(id), !calls[id].waiting.isEmpty {
        skipOvertaken(in: id)
        continue
      }
      guard let group = calls[id].takeGroup(all: isLimited && isLastCall(of: id), at: now) else {
        return calls[id].running.isEmpty ? finish(id) : ()
      }
      for index in group { beginCall(index, in: id) }
      if isLimited { setTurn(of: id) }
    }
  }

  @inline(__always) func isOvertaken(_ id: DeliveryID) -> Bool {
    registry.termination != nil && !calls[id].isOfTermination && !calls[id].isNested
      && calls[id].step.yieldsToTermination
  }

  mutating func skipOvertaken(in id: DeliveryID) {
    for planned in calls[id].waiting {
      guard let name = registry.members[planned.observer]?.name else { continue }
      calls[id].record(.skipped(.overtaken), of: name, planned.observer, began: now)
      registry.transition.update { $0.isOvertaken = true }
    }
    calls[id].skipWaiting()
  }

  mutating func beginCall(_ index: Int, in id: DeliveryID) {
    let constants = calls[id].constants
    let planned = constants.calls[index]
    let (isNested, observer) = (constants.isNested, planned.observer)
    // It may have been removed since the delivery began.
    guard let member = registry.members[observer] else { return }
    // There is nothing to wait for.
    if member.isWork, constants.step.endsWork, works[observer]?.run == nil {
      registry.reached(observer, constants.change)
      return beginWork(member, in: id, constants, CallTime(deadline: now, grace: .zero))
    }
    if constants.isSave, calls.awaitsSave(of: observer, in: id) { return }
    let isBusy = calls.isBusy(observer, for: constants)
    let isHeld = member.isWork && isHeldBack(member, constants.step)
    let slot = isBusy || isHeld ? nil : callTime(of: member, in: id, of: constants)
    // An observer that can't be called now is notified as soon as possible, unless the daemon terminates, or has no time for
    // it before it does.
    let isTooLate = slot == nil && !isBusy && !isHeld && stop.budget != nil
    if !isNested, slot != nil || isHeld || isTerminating || isTooLate {
      registry.reached(observer, constants.change)
    }
    guard let slot else {
      let reason: LifecycleReport.Outcome.SkipReason =
        isHeld ? .earlierHookFailed : isBusy ? .busy : .outOfTime
      calls[id].record(.skipped(reason), of: member.name, observer, began: now)
      if constants.step.kind == .willEnterForeground { unentered.add(observer, isHeld: isHeld) }
      // It has nothing to save.
      if isTooLate, constants.step.kind == .didFinishLaunching { registry.launchFailed(observer) }
      // No call waits for it, and it is cancelled before the save.
      if member.isWork, constants.step.endsWork, isTerminating { cancelWork(observer) }
      return
    }
    if member.isWork { return beginWork(member, in: id, constants, slot) }
    let call = calls.begin(
      Call(
        of: constants, in: id, consume member, hook: planned.hook, began: now, time: slot))
    effects.starts.append(call)
  }

  /// Ends a call, whose hook has returned or was not called. A withdrawn call is unknown by now.
  mutating func ended(_ id: CallID, _ end: CallEnd) {
    guard let call = calls.end(id) else { return }
    if call.wait != .own, calls.unfinished[call.observer] == nil {
      registry.members.update(call.observer) { $0.isBusy = false }
      // A stop may pause it now, beside the calls that it waits for.
      if isTerminating, let id = calls.current { setTurn(of: id) }
    }
    if call.isAbandoned { return endedLate(call, end) }
    record(end, of: call)
    saveAgain(after: call)
    advance(call.delivery)
  }

  /// A save that began before the stop's saves has missed what has changed since.
  private mutating func saveAgain(after call: Call) {
    guard call.wait != .own, call.constants.isSave, calls[call.delivery].constants.isSave,
      let index = calls[call.delivery].begun(of: call.observer)
    else { return }
    beginCall(index, in: call.delivery)
    setTurn(of: call.delivery)
  }

  mutating func record(_ end: CallEnd, of call: Call) {
    switch end {
    case .gone: remove([call.observer])
    case .completed:
      record(call.isCancelled ? .timedOut : .completed, of: call)
      if !call.isCancelled { entered(call) }
    // It was cancelled when it was abandoned, and may throw that.
    case .failed(let failure) where call.wait == .again && failure.error is CancellationError:
      record(CallEnd.completed, of: call)
    case .failed(var failure):
      if call.isCancelled { failure.isLate = false }
      let outcome = call.isCancelled ? .timedOut : LifecycleReport.Outcome.failed(failure.error)
      record(outcome, of: call, failure)
    }
  }

  mutating func record(
    _ outcome: LifecycleReport.Outcome, of call: Call, _ failure: Failure? = nil
  ) {
    calls[call.delivery].record(
      outcome, of: call.name, call.observer, for: call.constants.type, began: call.began,
      duration: call.began.duration(to: now), failure: failure)
    note(outcome, of: call.observer, call.step)
  }

  /// Notes a failed launch: the observer is not called to save, which would destroy the state that it could not restore.
  /// Notes an observer that has not entered the foreground, too.
  mutating func note(
    _ outcome: LifecycleReport.Outcome, of observer: ObserverID, _ step: LifecycleStep
  ) {
    if outcome.isCompleted { return }
    switch step.kind {
    case .willEnterForeground: if registry.members[observer] != nil { unentered.add(observer) }
    case .didFinishLaunching: registry.launchFailed(observer)
    // Of work that begins with the launch.
    case nil where step.beginsWork: registry.launchFailed(observer)
    default: break
    }
  }

  /// Ends a call that had been abandoned: its observer can be notified again.
  mutating func endedLate(_ call: Call, _ end: CallEnd) {
    // A hook that never began is called again, now that it can be. In a launch that goes on, no observer enters any more.
    if case .completed = end, call.progress == .begun, !registry.isLaunchTransition {
      entered(call)
    }
    let time = call.began.duration(to: now).forReading
    let how =
      switch end {
      // That a call which was cancelled throws a CancellationError is no news.
      case .failed(let failure) where !(failure.error is CancellationError):
        "failed after \(time): \(failure.text)"
      default: "ended after \(time)"
      }
    effects.publish(.warning("\(call.name), \(call.step.name): \(how); it had been abandoned"))
    settleForeground()
  }

  /// Withdraws the pending calls of an observer that was removed, to which the effects have a reference; a running call
  /// goes on.
  mutating func withdrawCalls(of observer: ObserverID) {
    for id in calls.pending(of: observer) {
      if let call = calls.end(id) { advance(call.delivery) }
    }
  }

  // MARK: Ends

  /// Ends a delivery. In a stop some of its calls may still run, beside what follows: the stop's report has them.
  mutating func finish(_ id: DeliveryID) {
    for call in calls[id].running {
      let running = calls[call]
      // The stop has a save of its own for one that has not begun.
      let isDropped = running.constants.isSave && !running.isSaving && calls.end(call) != nil
      if !isDropped { registry.members.update(running.observer) { $0.isBusy = true } }
      guard !calls[id].isOfTermination else { continue }
      calls[id].record(
        .skipped(.overtaken), of: running.name, running.observer, began: running.began)
      registry.transition.update { $0.isOvertaken = true }
    }
    let delivery = calls.close(id)
    let report = LifecycleReport(cause: delivery.cause, entries: delivery.entries)
    // The end of the subject has answered it.
    if let post = delivery.post, !isClosed { effects.messages.append(.answered(post, report)) }
    if delivery.isNested { return finishOutOfBand(delivery.step, report) }
    registry.transition.update { $0.add(delivery.entries) }
    registry.finish(delivery.step)
    finishTransition()
    if delivery.step.kind == .willEnterForeground { settleForeground() }
  }

  /// Ends a post in a hook, or a health check, of which only problems are reported.
  mutating func finishOutOfBand(_ step: LifecycleStep, _ report: LifecycleReport) {
    let (problems, isCheck) = (report.problems, step.isHealthCheck)
    if isCheck {
      effects.publish(health.observersAnswered(problems.map(\.description) + stalls, at: now))
    }
    effects.messages.append(.reported(report, isHealthCheck: isCheck))
    if !isCheck, !problems.isEmpty { effects.publish(.problems(problems)) }
  }
}
