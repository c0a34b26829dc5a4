// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The state machine of a daemon, as a value: inputs go in, effects come out, and `deadline` is the time of the clock's
/// next action. It has no clock, lock, thread or task, and calls no observer: subject, mock and simulation drive the
/// same machine.
///
/// The registry decides which step is next and who receives it. The machine carries the step out: calls, their deadlines,
/// reports, the stop. Each of its parts keeps its own rules. Rules that need several parts are here: `+Delivery` from a
/// step to its report, `+Stop` from the request to the exit.
///
/// It is noncopyable, since an accidental copy would cost more than a delivery.
struct LifecycleMachine: ~Copyable, Sendable {
  /// The settings, which never change after the start. The times are those of the `LifecycleConfiguration`; none is
  /// negative.
  struct Policy: Sendable {
    let hookTimeout, cancellationGrace, saveReserve, stopDelay: Duration
    let stopTimeout, exitGrace, escalationDelay: Duration?
    /// `hookTimeout` and `cancellationGrace` in nanoseconds, computed once.
    let hookNanoseconds, graceNanoseconds: Int64
    /// Whether a service manager receives progress and extended deadlines.
    let hasServiceManager: Bool
    /// How long the service manager waits for a ping; `nil` without a watchdog.
    let watchdogPeriod: Duration?

    /// The time after a call's cancellation: of a share, at most a quarter.
    func grace(in share: Duration) -> Duration { min(cancellationGrace, share / 4) }
  }

  private(set) var policy: Policy
  /// The time of the last input.
  private(set) var now = MonotonicTime(nanoseconds: 0)
  /// The effects of the inputs, until the shell takes them.
  var effects = Effects()
  var registry: LifecycleRegistry
  var calls = Calls()
  /// The time at which the transition's progress is next sent to a service manager; the distant future where there is none.
  var progressDeadline = MonotonicTime.distantFuture
  /// The time that was asked for the transition, or for the whole stop, until the process has exited.
  var asked: TimeExtension?
  var stop = Stop()
  var sleep = Sleep()
  var health: Health
  var works = Works()
  /// Calls that waited for the start of a work, and end with this input.
  var endedWorkStarts: [CallID] = []
  /// The first error of work that was not cancelled; it ends the daemon.
  var workFailure: Failure?
  private(set) var status = StatusText()
  var unentered = Unentered()
  /// Whether an observer has a limit of its own for a stop.
  private(set) var hasOwnLimits = false
  /// The shortest and the longest limit that a warning was about: a newcomer's between them causes no other.
  var (shortestSaid, longestSaid) = (Duration.nanoseconds(Int64.max), Duration.zero)
  /// The time before the saves in a stop, as of the last warning.
  var timeBeforeSaves: Duration?
  /// The answers to posts that a stop refuses, by the notification's type: made once, since each names all observers.
  var refusals: [(type: ObjectIdentifier, entries: [LifecycleReport.Entry])] = []
  /// Answers the callers that wait for the launch, and for the end; `nil` while there are none. One closure for all:
  /// the type of an array of them would be made at run time.
  var launchWaiters: (@Sendable (LifecycleReport) -> Void)?
  var exitWaiters: (@Sendable (LifecycleExit) -> Void)?
  /// Whether the subject was deallocated: nothing more is delivered.
  var isClosed = false

  init(_ policy: Policy, state: LifecycleState = .launching) {
    self.policy = policy
    registry = LifecycleRegistry(state: state)
    health = Health(period: policy.watchdogPeriod)
  }

  /// Takes the settings that are known at the start only, before the launch.
  mutating func setPolicy(_ policy: Policy) {
    self.policy = policy
    health = Health(period: policy.watchdogPeriod)
  }

  // MARK: Inputs

  enum Input: Sendable {
    case event(LifecycleEvent)
    /// The launch is requested by a caller that waits for its report.
    case launch(@Sendable (LifecycleReport) -> Void)
    /// A caller waits for the end.
    case awaitExit(@Sendable (LifecycleExit) -> Void)
    /// `inside`: the call of the hook that posts.
    case post(LifecyclePost, inside: CallID?)
    /// Its poster was cancelled.
    case hasten(LifecyclePost)
    case add(Member)
    case remove([ObserverID])
    case hold, release
    case ended(CallID, CallEnd)
    case extend(CallID, by: Duration)
    /// The deadline was reached.
    case clock
    case work(ObserverID, WorkInput)
    /// The process exits when the daemon has ended: the exit grace applies.
    case exitExpected
    case systemd(SystemdInput)
    /// A ping is due; since the last one the process was stalled from outside for this long.
    case watchdogTick(stall: Duration)
    /// A probe asks whether the daemon is healthy.
    case probed
    /// Swift's executors are being checked.
    case healthAsked(round: UInt64)
    case healthAnswer(Health.Answer)
    /// The daemon's own status text.
    case status(String?)
    /// A fact from outside of the machine, which only passes it on.
    case fact(LifecycleFact)
    /// The daemon can't go on: it terminates, with status 70 as a rule.
    case lost(LifecycleCause)
    /// A stop that has begun has time for its saves alone.
    case hurry
    case close
  }

  /// The end of a call.
  enum CallEnd: Sendable {
    case completed
    case failed(Failure)
    /// The observer no longer exists, and nothing was called.
    case gone
  }

  mutating func handle(_ input: consuming Input, at now: MonotonicTime) {
    self.now = now
    take(input)
    endWorkStarts()
    pump()
    if registry.transition == nil { unentered.isRetrying = false }
    publishReadyToSleep()
  }

  private mutating func take(_ input: consuming Input) {
    switch consume input {
    case .event(let event): receive(event)
    case .launch(let waiter): launch(waiter)
    case .awaitExit(let waiter):
      if let exit = stop.exit { return effects.messages.append(.exited(exit, to: waiter)) }
      exitWaiters = { [earlier = exitWaiters] exit in
        earlier?(exit)
        waiter(exit)
      }
    case .post(let post, let call): self.post(post, call)
    case .hasten(let post): hasten(post)
    case .add(let member): add(member)
    case .remove(let ids): remove(ids)
    case .hold: registry.holds += 1
    case .release: registry.holds -= 1
    case .ended(let call, let end): ended(call, end)
    case .extend(let call, let extra): extend(call, by: extra)
    case .clock: timePassed()
    case .work(let id, let input): take(input, of: id)
    case .exitExpected:
      stop.isExitExpected = true
      stop.expectExit(policy, at: now)
    case .systemd(let input): take(input)
    case .watchdogTick(let stall): watchdogTick(stall)
    case .probed: probed()
    case .healthAsked(let round): health.asked(round)
    case .healthAnswer(let answer): effects.publish(health.receive(answer, at: now))
    case .status(let text):
      status.set(text, at: now)
      publishStatus()
    case .fact(let fact): effects.publish(fact)
    case .lost(let cause):
      stop.isLost = true
      let held = stop.endDrain()
      receive(LifecycleEvent(.terminate, cause: cause))
      guard let held else { break }
      stop.status = stop.status ?? held.cause.status
      // The next signal is the second one.
      if held.cause.signal != nil { _ = registry.receive(held) }
    case .hurry: expedite()
    case .close: close()
    }
  }

  mutating func receive(_ event: LifecycleEvent, post: LifecyclePost? = nil) {
    let reasons = registry.backgroundReasons.count
    switch event.request {
    case .sleep: sleep.isMachineWaiting = true
    // The next sleep may not be delayed.
    case .wakeUp: sleep.end = nil
    case .checkHealth: return checkHealth(event.cause)
    case .describe: return describe()
    default: break
    }
    if !isSameStop(event), !drains(event) {
      switch registry.receive(event, post: post) {
      case .none: break
      case .refused:
        if case .post(let note) = event.request { refuse(post ?? LifecyclePost(note)) }
      case .terminate: beginTermination()
      case .expedite: expedite()
      case .exitNow: exitNow(event.cause)
      }
      // A pause or a sleep ends the serving that the drain is for.
      if stop.isDraining, !registry.isServing { endDrain() }
    }
    // An event adds or removes one at most. The daemon stays in the background.
    if registry.backgroundReasons.count != reasons, !registry.backgroundReasons.isEmpty,
      registry.state == .background, !isTerminating
    {
      effects.publish(.positionChanged(event.cause, snapshot))
    }
    switch event.request {
    case .resume, .wakeUp: enterAgain()
    default: break
    }
  }

  /// Launches the daemon, unless there is nothing to launch: it terminates, or was launched.
  private mutating func launch(_ waiter: @escaping @Sendable (LifecycleReport) -> Void) {
    let cause = LifecycleCause(.launch)
    launchWaiters = { [earlier = launchWaiters] report in
      earlier?(report)
      waiter(report)
    }
    if registry.isLaunchTransition { return }
    guard !isTerminating, registry.state == .launching else {
      return answerLaunch(LifecycleReport(cause: cause, entries: []))
    }
    registry.requests.launch = cause
  }

  // MARK: Time

  /// The time of the next `.clock` input; the distant future when there is none.
  ///
  /// Inlined, since otherwise the compiler copies the machine, which is 1.3 kB, for the caller.
  @inline(__always) var deadline: MonotonicTime {
    var deadline = min(calls.deadline, stop.deadline)
    if let asked { deadline = min(deadline, asked.next) }
    deadline = min(min(deadline, progressDeadline), min(unentered.deadline, works.deadline))
    return min(deadline, min(health.deadline, status.deadline))
  }

  private mutating func timePassed() {
    if case .draining(_, let end) = stop.phase, end <= now { endDrain() }
    expire()
    publishProgress()
    repeatExtension()
    publish(health.timePassed(at: now))
    workTimePassed()
    publishStatus()
    if unentered.deadline <= now {
      unentered.retry(isAlone: registry.transition == nil && registry.isServing)
      enterAgain()
    }
    if stop.isOverdue(at: now) { effects.isOverdue = true }
  }

  mutating func publishStatus(isDue: Bool = false) {
    if let text = status.take(at: now, isDue: isDue) { effects.publish(.statusNote(.daemon, text)) }
  }

  // MARK: Position

  /// Whether the daemon is in the foreground with all observers, and not about to leave it.
  var isReady: Bool {
    registry.isServing && !stop.isDraining && !isClosed && unentered.isEmpty
  }
  /// Whether nothing is under way; valid after `handle`, when everything that could begin has begun.
  var isIdle: Bool { calls.deliveries.isEmpty && !health.isChecking }
  var isTerminating: Bool { registry.termination != nil }

  // MARK: Observers

  private mutating func add(_ member: Member) {
    registry.add(member)
    if member.work != nil { works.add(Work(member)) }
    guard let limit = member.timeout,
      member.receives(.kind(.didEnterBackground)) || member.receives(.workEnds)
    else { return }
    hasOwnLimits = true
    if limit < shortestSaid || limit > longestSaid { warnOfLimits(of: member) }
  }

  mutating func remove(_ ids: [ObserverID]) {
    let save = LifecycleStep.kind(.shouldSaveState)
    var wasSaver = false
    for id in ids {
      guard let observer = registry.members.remove(id) else { continue }
      if stop.budget != nil, observer.receives(save) { wasSaver = true }
      effects.removed.append(observer)
      unentered.remove([id])
      withdrawCalls(of: id)
      removeWork(id)
    }
    if wasSaver, !registry.members.receive(save) {
      stop.freeReserve()
      limitRunning(hasGrown: true)
    }
    settleForeground()
  }
}
