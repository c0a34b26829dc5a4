// SPDX-License-Identifier: Apache-2.0
/// The lifecycle as a pure state machine: events go in, steps to deliver come out, one at a time.
///
/// No I/O, clock, thread or lock in here: the real subject, the mock and the simulation drive the same
/// code. The driver calls `next()` until it gets a step, delivers it, calls `reached(_:)` as the delivery
/// gets to each member and `finishStep()` at its end, and asks for the next.
///
/// A *transition* is the run of steps that one request takes (pause: DidEnterBackground, then ShouldSaveState).
/// Between transitions the request that has waited longest is planned, so the order of arrival is kept and a storm
/// of one kind can't starve another; requests of one kind that wait together are one. Where a request was taken
/// back while it waited, nothing is delivered: the registry converges on the latest state wanted.
struct LifecycleRegistry: Sendable {
  /// A step to deliver, and the members that receive it.
  struct Plan: Sendable {
    let step: LifecycleStep
    let cause: LifecycleCause
    let audience: LifecycleAudience<ObserverID>
    /// Which transition it belongs to: grows from transition to transition.
    let transition: UInt64
    /// What that transition is about.
    let kind: LifecycleTransition
    let isOfTermination: Bool

    /// For members that have missed it.
    var isCatchUp: Bool { if case .lateObserver = cause.origin { true } else { false } }
  }

  /// What an event asks of the driver at once, beside asking for the next step.
  enum Effect: Equatable, Sendable {
    case none
    /// Too late: the daemon is terminating.
    case refused
    /// Termination begins: leave out the rest of the step being delivered if it yields, cancel the body.
    case terminate
    /// The second signal: cancel running hooks, keep the save reserve only.
    case expedite
    /// The third signal.
    case exitNow
  }

  /// Changes at the beginning of a `Did…` step and at the end of a `Will…` one.
  private(set) var state: LifecycleState
  /// Foreground is wanted only while there is none. A suspend is one of them.
  private(set) var backgroundReasons: Set<BackgroundReason> = []
  /// Grows as these change: to compare them, one would have to copy them.
  private(set) var reasonChanges: UInt64 = 0
  /// WillSuspend was delivered and DidResume was not.
  private(set) var isSuspended = false
  /// Set by the first terminate, for good.
  private(set) var termination: LifecycleCause?
  /// Deliveries are held back while positive; those of a termination are not.
  private(set) var holds = 0
  private(set) var members = LifecycleMembers()
  /// The rest of the transition under way. Cleared by termination, which plans its own.
  private(set) var steps: ArraySlice<LifecycleStep> = []
  private var transitionCause = LifecycleCause(.launch)
  private(set) var transitionNumber: UInt64 = 0
  /// What the transition under way, or the last one, is about.
  private(set) var transitionKind = LifecycleTransition.launch
  /// The step being delivered; `next()` gives none meanwhile.
  private(set) var current: CurrentStep?
  struct CurrentStep: Sendable {
    let step: LifecycleStep
    let isCatchUp: Bool
    /// What whoever is reached by it then knows.
    let change: NotificationKind.Change
  }
  /// The termination has taken steps from the transition that was under way.
  private(set) var hasCutTransition = false
  /// How many signals asked for an end: only signals escalate.
  private(set) var terminationSignals = 0
  private(set) var requests = PendingRequests()
  /// The machine is about to sleep.
  private(set) var wantsSleep = false

  init(state: LifecycleState = .launching) {
    self.state = state
    if state == .background { backgroundReasons = [.operator] }
  }

  // MARK: What comes in

  /// Takes one fact in. `postID` names a posted notification to its poster.
  mutating func receive(_ event: LifecycleEvent, postID: PostID? = nil) -> Effect {
    if case .terminate = event.kind { return terminate(event.cause) }
    guard termination == nil, state != .terminated else { return .refused }
    switch event.kind {
    case .launch: requests.enqueueLaunch(event.cause)
    case .enterBackground(let reason):
      add(reason)
      requests.enqueue(.state, event.cause)
    case .enterForeground(let reason):
      remove(reason)
      requests.enqueue(.state, event.cause)
    case .suspend:
      add(.suspend)
      wantsSleep = true
      requests.enqueue(.sleep, event.cause)
      requests.enqueue(.state, event.cause)
    case .resume:
      remove(.suspend)
      wantsSleep = false
      requests.enqueue(.sleep, event.cause)
      requests.enqueue(.state, event.cause)
    case .errand(let errand): requests.enqueue(.errand(errand), event.cause)
    case .pressure(let resource): requests.enqueue(.pressure(resource), event.cause)
    case .post(let notification):
      let post = LifecyclePost(notification, id: postID ?? PostID(value: 0))
      requests.enqueue(.post(post), event.cause)
    case .terminate, .checkHealth: break
    }
    return .none
  }

  private mutating func add(_ reason: BackgroundReason) {
    if backgroundReasons.insert(reason).inserted { reasonChanges += 1 }
  }

  private mutating func remove(_ reason: BackgroundReason) {
    if backgroundReasons.remove(reason) != nil { reasonChanges += 1 }
  }

  private mutating func terminate(_ cause: LifecycleCause) -> Effect {
    if cause.signal != nil { terminationSignals += 1 }
    guard termination == nil else {
      switch terminationSignals {
      case 2 where cause.signal != nil: return .expedite
      case 3... where cause.signal != nil: return .exitNow
      default: return .none
      }
    }
    termination = cause
    hasCutTransition = steps.contains { isStillRequested($0) }
    transitionCause = cause
    transitionNumber += 1
    transitionKind = .termination
    // A daemon that was never launched has nothing to take down.
    let isLaunched = state != .launching
    steps = isLaunched ? [.bodyEnds, .kind(.shouldSaveState), .kind(.willTerminate)] : []
    if !isLaunched { state = .terminated }
    return .terminate
  }

  /// Posts that a termination has overtaken: they will never be delivered.
  mutating func takeOvertakenPosts() -> [LifecyclePost] {
    termination == nil ? [] : requests.takePosts()
  }

  /// Who receives a notification that is posted in a hook, and so delivered at once, beside the current step.
  func audience(of step: LifecycleStep, cause: LifecycleCause) -> Plan {
    plan(step, cause: cause)
  }

  mutating func hold() { holds += 1 }
  mutating func release() { holds -= 1 }
  var isHeld: Bool { holds > 0 }

  /// Who will receive the rest of the transition under way, step by step, as far as that is known now.
  var remainingAudience: [(step: LifecycleStep, members: [ObserverID])] {
    var receivers: [ObserverID] = []
    let isLaunched = { (progress: LifecycleMembers.ObserverProgress) in
      progress.reachedState != .launching
    }
    members.forEach(where: isLaunched) { receivers.append($0.id) }
    return steps.map { ($0, receivers) }
  }

  // MARK: Members

  mutating func add(_ id: ObserverID, phase: LifecyclePhase) { members.add(id, phase: phase) }

  /// What a member that comes now would receive at once, to catch up; `nil` while that has to wait for anything else.
  var missedByNewcomers: [NotificationKind]? {
    guard !isInTransition, holds == 0, termination == nil else { return nil }
    return switch state {
    case .background: [.didFinishLaunching]
    case .foreground: [.didFinishLaunching, .willEnterForeground]
    case .launching, .terminated: nil
    }
  }

  /// The new member has a hook for none of what it has missed: it is where it would be after that.
  mutating func skipCatchUp(of id: ObserverID) { members.update(id) { $0.reachedState = state } }

  /// Sends nothing: what an observer does at its end is its owner's business.
  mutating func remove(_ id: ObserverID) { members.remove(id) }
  mutating func removeAll() { members.removeAll() }

  mutating func setBusy(_ id: ObserverID, _ isBusy: Bool) {
    members.update(id) { $0.isBusy = isBusy }
  }

  /// The member could not launch.
  mutating func launchFailed(_ id: ObserverID) {
    members.update(id) { member in
      member.reachedState = .launching
      member.launchFailed = true
    }
  }

  /// The delivery under way has got to this member: it is being notified now.
  mutating func reached(_ id: ObserverID) {
    switch current?.change {
    case .state(let state, _): members.update(id) { $0.reachedState = state }
    case .suspended(let isSuspended): members.update(id) { $0.isSuspended = isSuspended }
    case .nothing, nil: break
    }
  }

  /// The hook that the member was reached with never began, so it knows no more than before. It is notified again
  /// when it is neither busy nor where the daemon is; but not of the pause while terminating, when there is no later.
  mutating func notReached(_ id: ObserverID) {
    guard let step = current?.step, termination == nil || !step.isPause else { return }
    members.update(id) { member in
      switch step.change {
      case .state(_, let earlier): member.reachedState = earlier
      case .suspended(let isSuspended): member.isSuspended = !isSuspended
      case .nothing: break
      }
    }
  }

  // MARK: What comes out

  /// A transition is under way: a step is being delivered, or waits, or is held back.
  var isInTransition: Bool { current != nil || !steps.isEmpty }

  /// Nothing is left to be delivered of the machine's sleep, or of its end.
  var isSleepSettled: Bool {
    termination == nil && requests.sleep == nil && wantsSleep == isSuspended
      && !(isInTransition && transitionKind == .suspend)
  }

  /// In the foreground, and to stay there.
  var isServing: Bool { state == .foreground && backgroundReasons.isEmpty && termination == nil }

  /// The launch is not held: the hold may be released by what it waits for.
  var isLaunchTransition: Bool { transitionKind == .launch && isInTransition }

  /// Nothing to deliver and nothing being delivered, not even behind a hold.
  var isIdle: Bool {
    guard current == nil else { return false }
    var copy = self
    copy.holds = 0
    return copy.next() == nil
  }

  /// The next step, which is then the current one; `nil` while one is, while deliveries are held back,
  /// and when there is nothing to do.
  mutating func next() -> Plan? {
    guard current == nil, state != .terminated else { return nil }
    guard let plan = plannedStep() else { return nil }
    current = CurrentStep(
      step: plan.step, isCatchUp: plan.isCatchUp, change: plan.step.change)
    return plan
  }

  private mutating func plannedStep() -> Plan? {
    if termination != nil { return nextTerminationStep() }
    let isLaunch = state == .launching || isLaunchTransition
    guard holds == 0 || isLaunch else { return nil }
    return (holds == 0 ? catchUp() : nil) ?? nextTransitionStep()
  }

  /// The current step has ended, or was overtaken. Returns true when its transition is over too.
  @discardableResult mutating func finishStep() -> Bool {
    guard let ended = current.take() else { return true }
    switch ended.step.kind {
    case .willEnterForeground where !ended.isCatchUp && termination == nil: state = .foreground
    case .willTerminate: state = .terminated
    default: break
    }
    // A step that is no longer wanted must not keep its transition, and whoever waits for that, open.
    if termination == nil { steps = steps.drop { !isStillRequested($0) } }
    return steps.isEmpty
  }

  /// The third signal: nothing more is delivered.
  mutating func abort() {
    current = nil
    steps = []
    state = .terminated
  }

  private mutating func nextTerminationStep() -> Plan? {
    // Members in the foreground, and not the state: an upward step may have been overtaken midway.
    if members.contains(where: { $0.reachedState == .foreground }) {
      state = .background
      let step = LifecycleStep.kind(.didEnterBackground)
      return plan(step, cause: transitionCause)
    }
    guard !steps.isEmpty else { return nil }
    if state == .foreground { state = .background }
    let step = steps.removeFirst()
    if case .bodyEnds = step { return plan(step, cause: transitionCause) { _ in false } }
    return plan(step, cause: transitionCause)
  }

  /// Members that came late, or were busy, receive what the others have received, step by step, before
  /// anything else.
  private mutating func catchUp() -> Plan? {
    guard state != .launching, let step = missed().map(LifecycleStep.kind) else { return nil }
    if steps.isEmpty {
      transitionNumber += 1
      transitionKind = .catchUp
    }
    let change = step.change
    return plan(step, cause: LifecycleCause(.lateObserver)) {
      !$0.isBusy && $0.shouldReceive(change)
    }
  }

  /// The first step that somebody has missed who can receive it now.
  private func missed() -> NotificationKind? {
    let isMissed = { (kind: NotificationKind) -> Bool in
      let change = kind.row.change
      return members.contains { !$0.isBusy && $0.shouldReceive(change) }
    }
    if isMissed(.didFinishLaunching) { return .didFinishLaunching }
    if !isSuspended, isMissed(.didResume) { return .didResume }
    let last = state == .foreground ? NotificationKind.willEnterForeground : .didEnterBackground
    return isMissed(last) ? last : nil
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

  /// Whether a step of the transition under way is still what the daemon should do.
  private func isStillRequested(_ step: LifecycleStep) -> Bool {
    switch step.kind {
    case .willEnterForeground: backgroundReasons.isEmpty && state == .background
    case .didEnterBackground: state == .foreground
    case .willSuspend: wantsSleep && !isSuspended
    case .didResume: isSuspended
    default: true
    }
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
      guard let cause = requests.takeLaunch() else { return false }
      transitionKind = .launch
      transitionCause = cause
      steps = Steps.launch
      return true
    }
    guard let (kind, cause) = requests.takeNext() else { return false }
    transitionCause = cause
    (transitionKind, steps) = plannedTransition(for: kind)
    return true
  }

  /// Empty where nothing is left to do.
  private func plannedTransition(for kind: PendingRequests.Kind) -> (
    LifecycleTransition, ArraySlice<LifecycleStep>
  ) {
    switch kind {
    case .state where backgroundReasons.isEmpty: (.foreground, Steps.foreground)
    case .state: (.background, state == .foreground ? Steps.background : [])
    case .sleep where wantsSleep == isSuspended: (wantsSleep ? .suspend : .resume, [])
    case .sleep where wantsSleep: (.suspend, Steps.suspend)
    case .sleep: (.resume, Steps.resume)
    case .errand(let errand): (.errand(errand), errand.row.steps[...])
    case .pressure(let resource): (.pressure, [.pressure(resource)])
    case .post(let post): (.post, [.posted(post)])
    }
  }

  /// Of the transitions that happen most: made once, and taken from without a copy.
  private enum Steps {
    static let launch = steps(.didFinishLaunching, .willEnterForeground)
    static let foreground = steps(.willEnterForeground)
    static let background = steps(.didEnterBackground, .shouldSaveState)
    static let suspend = steps(.didEnterBackground, .shouldSaveState, .willSuspend)
    static let resume = steps(.didResume)

    private static func steps(_ kinds: NotificationKind...) -> ArraySlice<LifecycleStep> {
      kinds.map { .kind($0) }[...]
    }
  }

  /// The step with all that should receive it.
  private func plan(_ step: LifecycleStep, cause: LifecycleCause) -> Plan {
    let change = step.change
    return plan(step, cause: cause) { $0.shouldReceive(change) }
  }

  /// The step with the members that receive it, in order, cut into groups.
  private func plan(
    _ step: LifecycleStep, cause: LifecycleCause,
    to isIncluded: (LifecycleMembers.ObserverProgress) -> Bool
  ) -> Plan {
    var audience = LifecycleAudience<ObserverID>()
    var last: LifecyclePhase?
    audience.reserve(members.count(where: isIncluded))
    members.forEach(where: isIncluded, reversed: step.isDownward) { member in
      audience.append(member.id, together: member.phase.isConcurrent && member.phase == last)
      last = member.phase
    }
    return Plan(
      step: step, cause: cause, audience: audience, transition: transitionNumber,
      kind: transitionKind,
      isOfTermination: termination != nil)
  }
}
