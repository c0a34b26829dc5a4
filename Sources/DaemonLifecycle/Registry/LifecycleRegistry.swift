// SPDX-License-Identifier: Apache-2.0
/// The lifecycle as a pure state machine: events go in, steps to deliver come out, one at a time.
///
/// It has no I/O, clock, thread or lock: subject, mock and simulation drive the same code. The driver calls `next()`
/// until it returns a step, delivers the step, calls `reached(_:)` as the delivery reaches each member and
/// `finishStep()` at its end, and then requests the next.
///
/// A *transition* is the sequence of steps of one request (pause: DidEnterBackground, then ShouldSaveState). Between
/// transitions the request that has waited longest is planned, so the order of arrival is kept and many requests of one
/// kind can't starve another; requests of one kind that wait together are merged. If a request is revoked while it
/// waits, nothing is delivered: the registry converges on the latest requested state.
struct LifecycleRegistry: Sendable {
  /// A step to deliver, and the members that receive it.
  struct Plan: Sendable {
    let step: LifecycleStep
    let cause: LifecycleCause
    /// The members that receive it, in order.
    let members: [ObserverID]
    /// The number of its transition, which grows with each transition.
    let transition: UInt64
    /// The kind of that transition.
    let kind: LifecycleTransition
    let isOfTermination: Bool
  }

  /// An immediate action that an event requires of the driver, besides requesting the next step.
  enum Effect: Equatable, Sendable {
    case none
    /// Too late: the daemon is terminating.
    case refused
    /// The termination begins: skip the rest of the current step if it yields.
    case terminate
    /// The second signal: cancel running hooks that do not save; only the save reserve is left.
    case expedite
    /// The third signal.
    case exitNow
  }

  /// The state. It changes at the beginning of a `Did…` step and at the end of a `Will…` one.
  private(set) var state: LifecycleState
  /// The reasons for being in the background, sorted by name: each change is shown with the first of them. The foreground is
  /// requested only while there are none. A suspend is one of them.
  private(set) var backgroundReasons: [BackgroundReason] = []
  /// Whether WillSuspend was delivered and DidResume was not.
  private(set) var isSuspended = false
  /// The cause of the termination; set by the first terminate event, permanently.
  private(set) var termination: LifecycleCause?
  /// The number of holds. Deliveries are held back while it is positive, except those of a termination.
  var holds = 0
  var members = LifecycleMembers()
  /// Members to be notified of the foreground again, if they are not busy and the daemon is still there by then.
  var reentering: [ObserverID] = []
  /// The rest of the transition under way. Cleared by termination, which plans its own.
  private(set) var steps: ArraySlice<LifecycleStep> = []
  private var transitionCause = LifecycleCause(.launch)
  private(set) var transitionNumber: UInt64 = 0
  /// The kind of the transition under way, or of the last one.
  private(set) var transitionKind = LifecycleTransition.launch
  /// The step being delivered; meanwhile `next()` returns `nil`.
  private(set) var current: CurrentStep?
  struct CurrentStep: Sendable {
    let step: LifecycleStep
    /// The change of state of the members that it reaches.
    let change: NotificationKind.Change
  }
  /// Whether the termination has removed steps from the transition that was under way.
  private(set) var hasCutTransition = false
  /// The number of terminating signals that count: only signals escalate.
  private(set) var terminationSignals = 0
  var requests = PendingRequests()
  /// Whether the machine is about to sleep.
  private(set) var wantsSleep = false

  init(state: LifecycleState = .launching) {
    self.state = state
    if state == .background { backgroundReasons = [.operator] }
  }

  // MARK: Events

  /// Takes one event in; a posted notification may come with its poster.
  mutating func receive(_ event: LifecycleEvent, post: LifecyclePost? = nil) -> Effect {
    if case .terminate = event.request { return terminate(event.cause) }
    guard termination == nil, state != .terminated else { return .refused }
    switch event.request {
    case .pause(let reason): set(reason, true)
    case .resume(let reason): set(reason, false)
    case .suspend:
      set(.suspend, true)
      wantsSleep = true
    case .wakeUp:
      set(.suspend, false)
      wantsSleep = false
    case .post(let notification):
      requests.enqueue(post ?? LifecyclePost(notification), event.cause)
      return .none
    // These are beside the transitions.
    case .checkHealth, .describe: return .none
    default: break
    }
    requests.enqueue(event.request, event.cause)
    // Then the daemon goes where its reasons lead, be it a pause or a resume.
    if event.request.concernsSleep { requests.enqueue(.pause(for: .suspend), event.cause) }
    return .none
  }

  private mutating func set(_ reason: BackgroundReason, _ isThere: Bool) {
    backgroundReasons.set(reason, isThere) { $0.name < $1.name }
  }

  private mutating func terminate(_ cause: LifecycleCause) -> Effect {
    if cause.signal != nil { terminationSignals += 1 }
    guard termination == nil else {
      if cause.signal == nil || terminationSignals < 2 { return .none }
      return terminationSignals == 2 ? .expedite : .exitNow
    }
    termination = cause
    hasCutTransition = steps.contains { isStillRequested($0) }
    transitionCause = cause
    transitionNumber += 1
    transitionKind = .termination
    // A daemon that was never launched has nothing to end.
    let isLaunched = state != .launching
    steps = isLaunched ? ([.workEnds] + LifecycleTransition.termination.row.steps)[...] : []
    if !isLaunched { state = .terminated }
    return .terminate
  }

  var isHeld: Bool { holds > 0 }

  // MARK: Members

  /// Adds a member. One that could catch up at once, and has a hook for nothing that it has missed, skips that.
  mutating func add(_ member: Member) {
    members.add(member)
    if let form = member.work?.form, form != .foreground {
      members.update(member.id) { $0.throughout = form == .body ? .begun : .waiting }
    }
    guard !isInTransition, holds == 0, termination == nil,
      state == .foreground || state == .background, !member.receives(.kind(.didFinishLaunching)),
      state == .background || !member.receives(.kind(.willEnterForeground))
    else { return }
    members.update(member.id) { $0.reachedState = state }
  }

  /// Notes that a member's launch failed. So has the daemon's then, which goes to its end without the foreground.
  mutating func launchFailed(_ id: ObserverID) {
    if isLaunchTransition { steps = [] }
    members.update(id) { member in
      member.reachedState = .launching
      member.launchFailed = true
    }
  }

  /// Notes that the delivery under way has reached a member, which is being notified now.
  mutating func reached(_ id: ObserverID) {
    switch current?.change {
    case .state(let state, _): members.update(id) { $0.reachedState = state }
    case .suspended(let isSuspended): members.update(id) { $0.isSuspended = isSuspended }
    case .work(let begins): members.update(id) { $0.throughout = begins ? .begun : .none }
    case .nothing, nil: break
    }
  }

  /// Notes that the hook with which a member was reached did not begin, so it was not notified. It is notified again
  /// when it is not busy and not in the daemon's state; but while terminating it is not notified of the pause again.
  mutating func notReached(_ id: ObserverID, _ step: LifecycleStep) {
    guard termination == nil || !step.isPause else { return }
    members.update(id) { member in
      switch step.change {
      case .state(_, let earlier): member.reachedState = earlier
      case .suspended(let isSuspended): member.isSuspended = !isSuspended
      case .work, .nothing: break
      }
    }
  }

  // MARK: Steps

  /// Returns the next step, which becomes the current one; `nil` while there is a current one, while deliveries are
  /// held back, and when there is nothing to do.
  mutating func next() -> Plan? {
    guard current == nil, state != .terminated, let plan = takeStep() else { return nil }
    current = CurrentStep(step: plan.step, change: plan.step.change)
    return plan
  }

  private mutating func takeStep() -> Plan? {
    if termination != nil { return nextTerminationStep() }
    let isLaunch = state == .launching || isLaunchTransition
    guard holds == 0 || isLaunch else { return nil }
    // A suspend may have no time for who is late, nor for who was skipped in it: both are notified after it.
    let isSuspending = transitionKind == .suspend && !steps.isEmpty
    return (holds == 0 && !isSuspending ? catchUp() : nil) ?? nextTransitionStep()
  }

  /// Ends the current step, which may have been overtaken. Returns true when its transition is over too.
  @discardableResult mutating func finishStep() -> Bool {
    guard let ended = current.take() else { return true }
    switch ended.step.kind {
    case .willEnterForeground where termination == nil: state = .foreground
    case .willTerminate: state = .terminated
    // Unless the launch has failed, and has no more steps. Work belongs to it wherever the daemon goes then.
    case .didFinishLaunching
    where transitionKind == .launch && !steps.isEmpty && isMissed(.workBegins):
      steps = [.workBegins] + steps
    default: break
    }
    // A step that is no longer requested must not keep its transition open.
    steps = steps.drop { !isStillRequested($0) }
    guard steps.isEmpty else { return false }
    // A slice keeps what has been removed from it: a post, until the next transition.
    steps = []
    return true
  }

  /// Handles the third signal: nothing more is delivered.
  mutating func abort() {
    current = nil
    steps = []
    state = .terminated
  }

  private mutating func nextTerminationStep() -> Plan? {
    state = .background
    if members.contains(where: isToPause) { return pausePlan(to: isToPause) }
    // Nobody waits any longer for what the others are busy with.
    let isInForeground = { (member: LifecycleMembers.ObserverProgress) in
      member.reachedState == .foreground
    }
    if !endsWork, members.contains(where: isInForeground) { return pausePlan(to: isInForeground) }
    guard !steps.isEmpty else { return nil }
    let step = steps.removeFirst()
    return plan(step, cause: transitionCause)
  }

  /// Plans a step for members that were added late, or were busy: they receive what the others have received, before
  /// anything else.
  private mutating func catchUp() -> Plan? {
    for id in reentering where state == .foreground {
      members.update(id) { if !$0.isBusy { $0.reachedState = .background } }
    }
    reentering = []
    guard state != .launching, let step = missed() else { return nil }
    if steps.isEmpty {
      transitionNumber += 1
      transitionKind = .catchUp
    }
    let change = step.change
    return plan(step, cause: LifecycleCause(.lateObserver)) {
      !$0.isBusy && $0.shouldReceive(change)
    }
  }

  private mutating func nextTransitionStep() -> Plan? {
    repeat {
      while !steps.isEmpty {
        let step = steps.removeFirst()
        if isStillRequested(step) { return begin(step) }
      }
    } while (holds == 0 || state == .launching) && planTransition()
    return nil
  }

  private mutating func begin(_ step: LifecycleStep) -> Plan {
    switch step.kind {
    case .didFinishLaunching, .didEnterBackground: state = .background
    case .willSuspend: isSuspended = true
    case .didResume: isSuspended = false
    default: break
    }
    return plan(step, cause: transitionCause)
  }

  /// Plans the transition for the request that has waited longest; false when there is none.
  private mutating func planTransition() -> Bool {
    transitionNumber += 1
    if state == .launching {
      guard let cause = requests.launch.take() else { return false }
      transitionKind = .launch
      transitionCause = cause
      steps = transitionKind.row.steps[...]
      return true
    }
    guard let waiting = requests.takeNext() else { return false }
    transitionCause = waiting.cause
    (transitionKind, steps) = plannedTransition(for: waiting)
    return true
  }
}
