import CLinux
import Systemd

// The beginning and the end: launch, body, termination, exit.
extension LifecycleCore {
  // MARK: Launch

  /// Delivers the launch and returns its report; at once, with an empty one, when there is nothing to launch
  /// because the daemon was terminated before.
  nonisolated(nonsending) func launch() async -> LifecycleReport {
    readiness?.prepare()
    return await withTaskExecutorPreference(callerExecutor) {
      await withCheckedContinuation { continuation in
        self.change { state, work in
          self.receive(
            LifecycleEvent(.launch, cause: LifecycleCause(.launch)), postID: nil, &state, &work)
          // Nothing to launch: terminated, or a mock that was made in a later state.
          if state.registry.termination != nil || state.registry.state != .launching {
            let report = LifecycleReport(cause: LifecycleCause(.launch), entries: [])
            work.tellings.append { continuation.resume(returning: report) }
          } else {
            state.launchWaiters.append(continuation)
          }
        }
      }
    }
  }

  func launchEnded(_ report: LifecycleReport, _ state: inout State, _ work: inout Work) {
    let isFailed = report.severity > 0 && configuration.terminatesWhenLaunchFails
    if !isFailed, state.registry.termination == nil {
      armHealth(&state)
      tell(.launched(snapshot(state)), &work)
    }
    for waiter in state.launchWaiters { work.tellings.append { waiter.resume(returning: report) } }
    state.launchWaiters = []
    guard isFailed else { return }
    state.failedLaunch = report
    receive(
      LifecycleEvent(.terminate, cause: LifecycleCause(.launchFailed)), postID: nil, &state, &work)
  }

  // MARK: Body

  /// Runs the body as a task of its own on the cooperative pool: it can be abandoned like a hook.
  ///
  /// Not when the daemon terminates already. In one step with looking, so that it either never begins or is
  /// waited for.
  func start(body: RunBody) {
    change { state, _ in
      guard state.registry.termination == nil else { return }
      let task = Task.detached {
        do {
          try await body.run()
          self.bodyEnded(nil)
        } catch {
          self.bodyEnded(Failure(error))
        }
      }
      state.body = .running(task, cancelled: nil)
    }
  }

  private func bodyEnded(_ thrown: Failure?) {
    let now = now
    change { state, work in
      let wasCancelled = state.registry.termination != nil
      // Ending by the cancellation that was asked for is no failure.
      let failure = wasCancelled && thrown?.error is CancellationError ? nil : thrown
      state.body = .ended(failure)
      guard wasCancelled else {
        let cause = failure.map { LifecycleCause($0) } ?? LifecycleCause(.bodyReturned)
        return self.receive(
          LifecycleEvent(.terminate, cause: cause), postID: nil, &state, &work)
      }
      self.bodyEnds(at: now, failure, &state, &work)
    }
  }

  /// The termination waits for the body: its entry in the report is like a hook's.
  func awaitBody(_ delivery: Delivery, _ state: inout State) {
    if case .ended(let failure) = state.body {
      return record(
        failure.map { .failed($0.error) } ?? .completed, of: .body, in: delivery, .zero,
        text: failure?.text)
    }
    guard case .running(_, let cancelled) = state.body else { return }
    let now = now
    let began = cancelled ?? now
    let limit = limit(of: delivery, at: now, state)
    let deadline = min(
      began.advanced(by: configuration.hookDeadline), limit?.cancel ?? .distantFuture)
    // It runs already, and nobody calls it.
    let run = HookRun(
      0..<1, of: delivery, began: began, deadline: deadline,
      grace: limit?.grace ?? configuration.cancellationGrace, progress: .begun, core: self)
    begin(run, &state)
  }

  private func bodyEnds(
    at now: MonotonicTime, _ failure: Failure?, _ state: inout State, _ work: inout Work
  ) {
    if let run = state.unfinished[ObserverEntry.body.id]?.first {
      return endedLate(run, at: now, &state, &work)
    }
    for delivery in state.deliveries {
      guard let run = delivery.running.first(where: \.isBody) else { continue }
      end(run, &state)
      let outcome: LifecycleReport.Outcome =
        run.isCancelled ? .timedOut : failure.map { .failed($0.error) } ?? .completed
      record(
        outcome, of: .body, in: delivery, from: run.began, run.began.duration(to: now),
        text: failure?.text)
      advance(delivery, &state, &work)
    }
  }

  // MARK: Termination

  func beginTermination(_ state: inout State, _ work: inout Work) {
    let now = now
    if state.budget == nil {
      state.budget = StopBudget(configuration, allowed: state.stopTimeout, from: now)
    }
    state.termination = TerminationStart(time: now, overtaken: state.walk?.kind)
    expectUnitJob(&state)
    if let cause = state.registry.termination { tell(.terminating(cause), &work) }
    if state.registry.hasCutWalk { state.walk.update { $0.isOvertaken = true } }
    releasePostponed(&state)
    endHealthRound(&state)
    if case .running(let task, nil) = state.body {
      state.body = .running(task, cancelled: now)
      work.cancelsBody = task
    }
    for post in state.registry.takeOvertakenPosts() {
      refuse(post.notification, post.id, &state, &work)
    }
    for waiter in state.launchWaiters {
      let report = LifecycleReport(
        cause: LifecycleCause(.launch), entries: state.walk?.entries ?? [])
      work.tellings.append { waiter.resume(returning: report) }
    }
    state.launchWaiters = []
    limitRunning(at: now, &state)
    // Never launched, nothing to take down.
    if state.registry.state == .terminated {
      conclude(
        LifecycleReport(cause: state.registry.termination!, entries: []), &state, &work)
    }
  }

  /// The service manager has said what it allows; the stop may have begun.
  func stopTimeoutIsKnown(_ timeout: Duration, _ state: inout State) {
    state.stopTimeout = timeout
    guard state.budget != nil else { return }
    state.budget.update { $0.limit(configuration, allowed: timeout) }
    limitDrain(&state)
    limitRunning(at: now, &state)
  }

  /// The second signal. What saves keeps its reserve; all else is cancelled now, and no more begins.
  func hurry(_ state: inout State, _ work: inout Work) {
    let now = now
    state.budget.update { $0.hurry(at: now) }
    limitRunning(at: now, &state)
    // Enough for a hook that obeys. It comes out of the save reserve: the hook's own time is over.
    let left = state.budget.map { now.duration(to: $0.end) } ?? .zero
    let grace = min(configuration.cancellationGrace, max(.zero, left) / 4)
    for delivery in state.deliveries where !delivery.budgetStep.isSave {
      for run in delivery.running where !run.isCancelled {
        run.grace = grace
        cancel(run, at: now, &work)
      }
    }
  }

  /// The third signal.
  func exitNow(_ cause: LifecycleCause, _ state: inout State, _ work: inout Work) {
    let code = 128 + (cause.signal?.rawValue ?? 0)
    exitProcess(code)
    // Only a test gets here.
    let now = now
    for delivery in state.deliveries {
      for run in delivery.running.reversed() { giveUp(run, at: now, &state) }
      state.walk.update { $0.entries += delivery.entries }
      if let waiter = delivery.waiter {
        work.tellings.append {
          waiter.resume(returning: LifecycleReport(cause: cause, entries: []))
        }
      }
    }
    work.garbage.append(state.deliveries)
    for delivery in state.deliveries { state.remove(delivery) }
    state.registry.abort()
    let report = LifecycleReport(
      cause: state.registry.termination ?? cause, entries: state.walk?.entries ?? [])
    state.walk = nil
    conclude(report, code: code, &state, &work)
  }

  func refuse(
    _ event: LifecycleEvent, _ postID: PostID?, _ state: inout State, _ work: inout Work
  ) {
    if case .post(let notification) = event.kind {
      refuse(notification, postID, &state, &work)
    }
  }

  /// A post that came too late: its poster gets a report that says so for each who would have heard.
  private func refuse(
    _ notification: any LifecycleNotification, _ id: PostID?, _ state: inout State,
    _ work: inout Work
  ) {
    guard let id, let poster = state.posters.removeValue(forKey: id) else { return }
    let step = LifecycleStep.posted(LifecyclePost(notification, id: id))
    let type = ObjectIdentifier(type(of: notification))
    let plan = state.registry.audience(of: step, cause: LifecycleCause(.api))
    let entries = plan.audience.members.compactMap { state.observers[$0] }
    let now = now
    let skipped = entries.filter { $0.hookCount(for: type) > 0 }.map {
      LifecycleReport.Entry(
        notification: step.type, outcome: .skipped(.overtaken), duration: .zero, name: $0.name,
        began: now, registration: $0.id.value)
    }
    let report = LifecycleReport(cause: LifecycleCause(.api), entries: skipped)
    work.tellings.append { poster.resume(returning: report) }
  }

  // MARK: Exit

  /// WillTerminate has been delivered: whoever waits for the end gets it.
  func conclude(
    _ report: LifecycleReport, code: Int32? = nil, _ state: inout State, _ work: inout Work
  ) {
    guard state.exit == nil, let cause = state.registry.termination else { return }
    var bodyError: (any Error)?
    if case .ended(let failure) = state.body { bodyError = failure?.error }
    // A hook that threw is counted as failed, a body that threw by its own code.
    let severity = max(state.failedLaunch?.severity ?? 0, report.severity)
    let exit = LifecycleExit(
      code: code ?? LifecycleExit.code(bodyFailed: bodyError != nil, severity: severity),
      cause: cause, report: report, failedLaunch: state.failedLaunch, error: bodyError)
    state.exit = exit
    let (waiters, streams) = (
      state.exitWaiters, state.streams.values.map(\.finish)
    )
    state.exitWaiters = []
    state.streams = [:]
    tell(.terminated(exit), &work)
    work.endedRounds = Array(state.rounds.values)
    work.tellings.append {
      for finish in streams { finish() }
      for waiter in waiters { waiter.resume(returning: exit) }
    }
    armExit(&state)
  }

  private func armExit(_ state: inout State) {
    guard state.isRun, state.exit != nil, let grace = exitGrace(state) else { return }
    state.exitDeadline = now.advanced(by: grace)
    state.keptAlive = self
  }

  /// A short stop has a short grace.
  private func exitGrace(_ state: borrowing State) -> Duration? {
    configuration.exitGrace.map { state.budget?.exitGrace ?? $0 }
  }

  /// The process still lives `exitGrace` after its end: exit(3) can hang, on a full stdout for one.
  func endProcess(_ state: inout State) {
    guard let exit = state.exit else { return }
    state.exitDeadline = nil
    StandardError.writeLine(
      "lifecycle: still running \(exitGrace(state)?.inSeconds ?? "0") s after the last hook:"
        + " ending with status \(exit.code)")
    exitProcess(exit.code)
    // Only a test gets here.
    state.keptAlive = nil
  }

  /// Returns on the executor's thread when its caller is not isolated: the caller then goes on without the
  /// cooperative pool until it suspends again.
  nonisolated(nonsending) func untilTerminated() async -> LifecycleExit {
    await withTaskExecutorPreference(callerExecutor) {
      await withCheckedContinuation { continuation in
        self.change { state, work in
          state.isRun = true
          guard let exit = state.exit else {
            state.exitWaiters.append(continuation)
            return
          }
          self.armExit(&state)
          work.tellings.append { continuation.resume(returning: exit) }
        }
      }
    }
  }

  // MARK: Posts

  nonisolated(nonsending) func post(_ notification: any LifecycleNotification) async
    -> LifecycleReport
  {
    recorder?.didPost(notification)
    let outer = HookScope.currentCall.flatMap { $0.core === self && $0.isCurrent ? $0 : nil }
    return await withCheckedContinuation { continuation in
      change { state, work in
        guard !state.isClosed else {
          let nobody = LifecycleReport(cause: LifecycleCause(.api), entries: [])
          return work.tellings.append { continuation.resume(returning: nobody) }
        }
        // Once more, where nothing moves: a task that its hook has left behind may have been overtaken.
        if let outer, outer.isCurrent {
          return self.beginNested(
            notification, in: outer.run, waiter: continuation, &state, &work)
        }
        let id = PostID(value: state.newID())
        state.posters[id] = continuation
        self.receive(LifecycleEvent(.post(notification)), postID: id, &state, &work)
      }
    }
  }
}

/// The body of `run`, kept until the end: observers that only the body owns must live to save.
final class RunBody: Sendable {
  /// Called once. Its captures were sent here by the caller, who has no access to them any more.
  nonisolated(unsafe) private let body: @isolated(any) () async throws -> Void

  init(_ body: sending @escaping @isolated(any) () async throws -> Void) { self.body = body }

  func run() async throws { try await body() }
}
