// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Events of a work, and the actions that follow.
extension Work {
  // MARK: Its begin

  /// It is to run. Returns whether the step is to wait for it.
  ///
  /// - Parameter isAwaited: Whether the step would wait.
  mutating func enter(at now: MonotonicTime, isAwaited: Bool) -> (Action?, waits: Bool) {
    let waits = isAwaited && options.readyWithin != nil
    switch state {
    case .resting where !isClosed, .returned where !isClosed:
      isStarting = waits
      return (begin(at: now), waits)
    // Work that runs, or will be restarted, is not started by a step.
    default: return (nil, false)
    }
  }

  private mutating func begin(at now: MonotonicTime) -> Action {
    lastRun += 1
    reason = nil
    let isReady = options.readyWithin == nil
    var run = Run(number: lastRun, began: now, isReady: isReady, progressed: now)
    if isReady { watch(&run) }
    state = .running(run)
    return .begin(run: lastRun, isReady: isReady)
  }

  /// Its body says that it is ready, or why it is not. Returns whether that is news: that it has become ready once is, even
  /// if a later change has come first.
  mutating func readinessChanged(
    _ number: UInt64, _ lack: String?, _ change: UInt64, at now: MonotonicTime
  ) -> Bool {
    guard case .running(var run) = state, run.number == number else { return false }
    let (isFirst, isLast) = (lack == nil && !run.isReady, run.lastChange < change)
    let isNews = isLast && lack != reason
    if isLast { (reason, run.lastChange) = (lack, change) }
    if isFirst {
      (run.isReady, run.progressed) = (true, now)
      watch(&run)
      isStarting = false
    }
    state = .running(run)
    return isFirst || isNews
  }

  // MARK: Its end is asked for

  /// It is to end, since its foreground, or the daemon, does. Returns whether the step is to wait for it.
  mutating func leave() -> (Action?, waits: Bool) {
    if case .running(let run) = state, options.drains, run.isReady {
      state = .finishing(run)
      return (.finish(run: run.number), true)
    }
    if case .finishing = state { return (nil, true) }
    if case .returned = state { state = .resting }
    let action = cancel()
    return (action, run != nil)
  }

  /// Its time is over, or nobody waits for it.
  mutating func cancel() -> Action? {
    switch state {
    case .running(let run), .finishing(let run):
      state = .cancelled(run)
      return .cancel(run: run.number)
    case .failing(let run, _): state = .cancelled(run)
    case .waiting: state = .resting
    case .resting, .returned, .cancelled, .over: break
    }
    return nil
  }

  /// No run begins any more, since the daemon has ended, or nobody waits for its end. One that goes on is cancelled.
  mutating func close() -> Action? {
    isClosed = true
    return cancel()
  }

  // MARK: Its end

  /// What the end of a run means.
  enum End: Sendable {
    /// It is an earlier run's.
    case earlier
    /// As it was asked to, or in a stop before its turn. The failure is no CancellationError.
    case asked(Failure?)
    case returned
    /// Its step has failed, and is retried as every observer's is.
    case notReady(Failure)
    /// It is run again: a line for the log.
    case restarts(Failure, String)
    /// For good.
    case failed(Failure)
  }

  /// A run has ended.
  ///
  /// - Parameter share: The part of a restart's delay to wait for: many daemons that fail together should not come back
  ///   together.
  mutating func ended(
    _ number: UInt64, _ thrown: Failure?, share: Double, isStopping: Bool, at now: MonotonicTime
  ) -> End {
    guard let run, run.number == number else { return .earlier }
    // A cancelled body may throw CancellationError.
    let own = thrown?.error is CancellationError ? nil : thrown
    var failure = thrown
    switch state {
    case .finishing, .cancelled:
      state = isCallerCancelled ? own.map { .over($0) } ?? .resting : .resting
      return .asked(own)
    case .failing(_, let fault): failure = own ?? Failure(fault)
    default:
      let isExpected = run.isReady || options.mayReturn || isStopping
      if thrown == nil, !isExpected {
        failure = Failure(WorkFault(description: "ended before it was ready"))
      }
    }
    guard let failure else {
      forget()
      state = isStopping ? .resting : .returned
      return .returned
    }
    if isStopping {
      state = .over(failure)
      return .asked(failure)
    }
    if let line = restart(failure, share: share, at: now) { return .restarts(failure, line) }
    state = isStarting ? .resting : .over(failure)
    return isStarting ? .notReady(failure) : .failed(failure)
  }

  private mutating func restart(
    _ failure: Failure, share: Double, at now: MonotonicTime
  ) -> String? {
    guard let policy = options.restarts, let next = history?.failed(at: now, share: share) ?? nil
    else { return nil }
    lastFailure = (next.number, failure, isShown: true)
    state = .waiting(until: now.advanced(by: next.delay))
    let most = policy.maximumFailures.map { " of \($0)" } ?? ""
    return
      "\(name) restarts in \(next.delay.forReading), after failure \(next.number)\(most): \(failure.text)"
  }

  private mutating func forget() {
    lastFailure = nil
    history = options.restarts.map { RestartHistory($0) }
  }

  // MARK: Time and progress

  /// An action and a line for the log that follow from the time or from progress.
  struct News: Sendable {
    var action: Action?
    var line: LifecycleFact?
    /// Whether it has stalled.
    var isStall = false
  }

  mutating func timePassed(at now: MonotonicTime) -> News? {
    switch state {
    case .waiting(let time) where time <= now:
      // If no step waits for it any more, it has a limit of its own.
      isStarting = entering != nil
      return News(action: begin(at: now))
    case .running(let run) where startLimit(of: run) <= now:
      return fail(run, "not ready after \((options.readyWithin ?? .zero).forReading)")
    case .running(let run) where recovery(of: run) <= now:
      forget()
      return News()
    case .running(let run) where noteEnd(of: run) <= now:
      lastFailure.update { $0.isShown = false }
      return News()
    case .running(var run) where run.nextLook <= now:
      // As late as this when the whole process has stood still, as by SIGSTOP, which counts neither way.
      let limit = options.stallsAfter ?? .zero
      let isLate = !run.isStalled && run.nextLook.duration(to: now) > limit / 4
      run.nextLook = isLate ? now.advanced(by: limit) : .distantFuture
      state = .running(run)
      return isLate ? nil : News(action: .askForProgress(run: run.number))
    default: return nil
    }
  }

  private mutating func fail(_ run: Run, _ fault: String) -> News {
    state = .failing(run, WorkFault(description: fault))
    return News(
      action: .cancel(run: run.number), line: .warning("\(name): \(fault). It is cancelled."))
  }

  private func watch(_ run: inout Run) {
    if let time = options.stallsAfter { run.nextLook = run.progressed.advanced(by: time) }
  }

  /// The run last made progress then; `nil`: never.
  mutating func progressed(_ number: UInt64, at time: MonotonicTime?, now: MonotonicTime) -> News? {
    guard case .running(var run) = state, run.number == number, let limit = options.stallsAfter
    else { return nil }
    let wasStalled = run.isStalled
    run.progressed = max(run.progressed, time ?? run.progressed)
    run.isStalled = run.progressed.advanced(by: limit) <= now
    watch(&run)
    // That a stalled run goes on is noticed within a second.
    if run.isStalled { run.nextLook = now.advanced(by: .seconds(1)) }
    state = .running(run)
    switch (wasStalled, run.isStalled) {
    case (true, false): return News(line: .info("\(name) makes progress again."))
    case (false, true):
      var news = News(line: .warning("\(stall): the daemon is not healthy."))
      if options.restarts != nil { news = fail(run, noProgress) }
      news.isStall = true
      return news
    default: return nil
    }
  }
}
