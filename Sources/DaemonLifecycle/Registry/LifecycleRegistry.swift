// SPDX-License-Identifier: Apache-2.0
/// The lifecycle as a pure state machine: events go in, steps to deliver come out, one at a time.
///
/// It has no I/O, clock, thread or lock: subject, mock and simulation drive the same code. The driver calls `next()`
/// until it returns a step, delivers the step, calls `reached` as the delivery reaches each member and `finish(_:)`
/// at its end, ends the transition with `endTransition()` if that is over, and then requests the next.
///
/// A *transition* is the sequence of steps of one request (pause: DidEnterBackground, then ShouldSaveState). Between
/// transitions the request that has waited longest is planned, so the order of arrival is kept and many requests of one
/// kind can't starve another; requests of one kind that wait together are merged. If a request is revoked while it
/// waits, nothing is delivered: the registry converges on the latest requested state. A termination cuts off what is left
/// of the transition under way, and is planned when that has ended.
struct LifecycleRegistry: Sendable {
  /// A step to deliver, and the members that receive it, in order.
  typealias Next = (step: LifecycleStep, cause: LifecycleCause, members: [ObserverID])

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
  /// requested only while there are none. A sleep is one of them.
  private(set) var backgroundReasons: [BackgroundReason] = []
  /// Whether WillSleep was delivered and DidWakeUp was not.
  private(set) var isAsleep = false
  /// The cause of the termination; set by the first terminate event, permanently.
  private(set) var termination: LifecycleCause?
  /// The number of holds. Deliveries are held back while it is positive, except those of a termination.
  var holds = 0
  var members = LifecycleMembers()
  /// Members to be notified of the foreground again, if they are not busy and the daemon is still there by then.
  var reentering: [ObserverID] = []
  /// The transition under way: a step is being delivered, or is left.
  var transition: Transition?
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
    case .sleep:
      set(.sleep, true)
      wantsSleep = true
    case .wakeUp:
      set(.sleep, false)
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
    if event.request.concernsSleep { requests.enqueue(.pause(for: .sleep), event.cause) }
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
    let isCut = transition?.left.contains { isStillRequested($0) } ?? false
    transition.update {
      $0.isOvertaken = isCut
      $0.passAll()
    }
    // A daemon that was never launched has nothing to end.
    if state == .launching { state = .terminated }
    return .terminate
  }

  var isHeld: Bool { holds > 0 }

  // MARK: Members

  /// Adds a member. To one without a hook for the launch that has no meaning: it begins in the background, and saves if a
  /// stop comes next; or where the daemon is, if nothing is under way and it has a hook for nothing that it has missed.
  mutating func add(_ member: Member) {
    members.add(member)
    if member.work?.form == .task { members.update(member.id) { $0.work = .waiting } }
    guard termination == nil, state == .foreground || state == .background,
      !member.receives(.kind(.didFinishLaunching))
    else { return }
    let goesOn = transition == nil && holds == 0 && !member.receives(.kind(.willEnterForeground))
    members.update(member.id) { $0.reachedState = goesOn ? state : .background }
  }

  /// Notes that a member's launch failed. So has the daemon's then, which goes to its end without the foreground.
  mutating func launchFailed(_ id: ObserverID) {
    if isLaunchTransition { transition.update { $0.passAll() } }
    members.update(id) { member in
      member.reachedState = .launching
      member.launchFailed = true
    }
  }

  /// Notes that the delivery under way has reached a member, which is being notified now.
  mutating func reached(_ id: ObserverID, _ change: NotificationKind.Change) {
    switch change {
    case .state(let state, _): members.update(id) { $0.reachedState = state }
    case .asleep(let isAsleep): members.update(id) { $0.isAsleep = isAsleep }
    case .work(let begins): members.update(id) { $0.work = begins ? .begun : .none }
    case .nothing: break
    }
  }

  /// Notes that the hook with which a member was reached did not begin, so it was not notified. It is notified again
  /// when it is not busy and not in the daemon's state; but while terminating it is not notified of the pause again.
  mutating func notReached(_ id: ObserverID, _ step: LifecycleStep) {
    guard termination == nil || !step.isPause else { return }
    members.update(id) { member in
      switch step.change {
      case .state(_, let earlier): member.reachedState = earlier
      case .asleep(let isAsleep): member.isAsleep = !isAsleep
      case .work, .nothing: break
      }
    }
  }

  // MARK: Steps

  /// Returns the next step to deliver, after the end of the one before; `nil` while deliveries are held back, when there is
  /// nothing to do, and when the transition under way is to be ended first.
  mutating func next() -> Next? {
    if state == .terminated { return nil }
    if let termination { return nextTerminationStep(termination) }
    guard holds == 0 || state == .launching || isLaunchTransition else { return nil }
    // Late and skipped observers are notified after a sleep, which may have no time for them.
    let mayCatchUp = holds == 0 && transition?.kind != .sleep
    return (mayCatchUp ? catchUp() : nil) ?? nextTransitionStep()
  }

  /// Ends a step, which may have been overtaken.
  mutating func finish(_ step: LifecycleStep) {
    switch step.kind {
    case .willEnterForeground where termination == nil: state = .foreground
    case .willTerminate: state = .terminated
    default: break
    }
    // A hook, or work that has begun, may have added it.
    if isLaunchTransition, isMissed(.workBegins) { transition.update { $0.returnToWork() } }
    passRevoked()
  }

  /// Leaves out what is no longer requested, which must not keep its transition open.
  private mutating func passRevoked() {
    while let step = transition?.next, !isStillRequested(step) {
      transition.update { $0.passNext() }
    }
  }

  /// Takes the transition under way, if that is over: no step of it is left.
  mutating func endTransition() -> Transition? {
    transition?.next == nil ? transition.take() : nil
  }

  /// Handles the third signal: nothing more is delivered. Returns the transition that was under way.
  mutating func abort() -> Transition? {
    state = .terminated
    return transition.take()
  }

  private mutating func nextTerminationStep(_ cause: LifecycleCause) -> Next? {
    if transition == nil { transition = Transition(.termination, cause) }
    guard transition?.kind == .termination else { return nil }
    state = .background
    var paused = receiversOfPause(areBusy: false)
    // Once work has ended, nobody waits any longer for the hooks that keep the others busy.
    if paused.isEmpty, !endsWork { paused = receiversOfPause(areBusy: true) }
    return paused.isEmpty ? nextStep() : (.kind(.didEnterBackground), cause, paused)
  }

  /// Plans a step for members that were added late, or were busy: they receive what the others have received, before
  /// anything else.
  private mutating func catchUp() -> Next? {
    for id in reentering where state == .foreground {
      members.update(id) { if !$0.isBusy { $0.reachedState = .background } }
    }
    reentering = []
    guard state != .launching, let step = missed() else { return nil }
    let (cause, change) = (LifecycleCause(.lateObserver), step.change)
    if transition == nil { transition = Transition(.catchUp, cause) }
    return (step, cause, receivers(of: step) { !$0.isBusy && $0.shouldReceive(change) })
  }

  private mutating func nextTransitionStep() -> Next? {
    if transition != nil { return nextStep() }
    while holds == 0 || state == .launching, planTransition() {
      if let next = nextStep() { return next }
      transition = nil
    }
    return nil
  }

  /// Begins the next step of the transition that is still what the daemon should do.
  private mutating func nextStep() -> Next? {
    passRevoked()
    guard let step = transition?.next, let cause = transition?.cause else { return nil }
    transition.update { $0.passNext() }
    switch step.kind {
    case .didFinishLaunching, .didEnterBackground: state = .background
    case .willSleep: isAsleep = true
    case .didWakeUp: isAsleep = false
    default: break
    }
    return (step, cause, receivers(of: step))
  }

  /// Plans the launch, or else the request that has waited longest; false when there is none.
  private mutating func planTransition() -> Bool {
    if state == .launching {
      transition = requests.launch.take().map { Transition(.launch, $0) }
      return transition != nil
    }
    guard let waiting = requests.takeNext() else { return false }
    transition = plannedTransition(for: waiting)
    return true
  }
}
