import Synchronization

/// One call of one hook, from the moment its driver is enqueued until it has ended or was given up.
final class HookCall: Sendable {
  /// Where the call is. It only moves forward, by compare-and-exchange: whoever moves it has decided.
  private enum Progress: UInt8, AtomicRepresentable {
    /// Its driver is enqueued. Becomes `driven`, or `givenUp` when there is no thread.
    case enqueued
    /// Its driver runs. Becomes `begun` in the hook's own isolation, or `givenUp`.
    case driven
    /// The hook runs. Becomes `ended` or `abandoned`.
    case begun
    /// It never began and never will.
    case givenUp
    /// It began and has been given up; a late hook asks `isCurrent`.
    case abandoned
    case ended
  }

  /// The call that the current task is part of; it may have ended since.
  @TaskLocal static var current: HookCall?

  let entry: ObserverEntry
  let hook: Hook
  let step: LifecycleStep
  let delivery: DeliveryID
  let began: MonotonicTime
  let core: LifecycleCore
  let cause: LifecycleCause
  /// Written by the core under its lock, read by hooks at any time.
  private let deadlineNanoseconds: Atomic<Int64>
  private let progress = Atomic<Progress>(.enqueued)
  /// Where the hook was called, to tell whether it still occupies that thread.
  private let place = Mutex<(worker: HookExecutor.Worker, sequence: UInt64)?>(nil)
  private let thrown = Mutex<String?>(nil)
  /// The beacon that went to the main actor before the call; 0: none was needed.
  private let beacon = Atomic<UInt64>(0)

  init(
    entry: ObserverEntry, hook: Hook, step: LifecycleStep, delivery: DeliveryID,
    cause: LifecycleCause, began: MonotonicTime, deadline: MonotonicTime, core: LifecycleCore
  ) {
    self.entry = entry
    self.hook = hook
    self.step = step
    self.delivery = delivery
    self.cause = cause
    self.began = began
    self.core = core
    deadlineNanoseconds = Atomic(deadline.nanoseconds)
  }

  /// Stands for the body of `run` in the report: it runs already, and nobody calls it.
  static func body(
    delivery: DeliveryID, cause: LifecycleCause, began: MonotonicTime, deadline: MonotonicTime,
    core: LifecycleCore
  ) -> HookCall {
    let entry = ObserverEntry.body
    let call = HookCall(
      entry: entry, hook: entry.hooks[0], step: .bodyEnds, delivery: delivery, cause: cause,
      began: began,
      deadline: deadline, core: core)
    call.progress.store(.begun, ordering: .releasing)
    return call
  }

  var clock: LifecycleClock { LifecycleClock(core: core) }
  var context: LifecycleContext {
    LifecycleContext(cause: cause, time: LifecycleClock.Instant(began), call: self)
  }

  var deadline: LifecycleClock.Instant {
    LifecycleClock.Instant(
      MonotonicTime(nanoseconds: deadlineNanoseconds.load(ordering: .relaxed)))
  }

  func set(deadline: MonotonicTime) {
    deadlineNanoseconds.store(deadline.nanoseconds, ordering: .relaxed)
  }

  func extendDeadline(by extra: Duration) { core.extend(self, by: extra) }

  var isCurrent: Bool {
    switch progress.load(ordering: .acquiring) {
    case .enqueued, .driven, .begun: true
    case .givenUp, .abandoned, .ended: false
    }
  }

  // MARK: The driver's side

  /// Calls the hook. Runs on a driver, on the subject's executor.
  func perform() async -> LifecycleReport.Outcome {
    guard move(from: .enqueued, to: .driven) else { return .skipped(.noThread) }
    guard let target = entry.target else { return .skipped(.gone) }
    guard let notification = step.notification(context) else { return .completed }
    do {
      if hook.isMethod, let actor = target as? any Actor {
        try await call(isolation: actor, target, notification)
      } else {
        notePlace()
        try await call(isolation: nil, target, notification)
        rememberPlace()
      }
    } catch {
      // Here, since it is user code: on the hook's driver, within the hook's time.
      let text = "\(error)"
      thrown.withLock { $0 = text }
      return .failed(error)
    }
    return .completed
  }

  /// What the error that the hook threw says of itself.
  var errorText: String? { thrown.withLock { $0 } }

  /// In the isolation of the hook: once this has begun it is on its actor, and one that was given up while
  /// it waited for its actor does not begin.
  private func call(
    isolation: isolated (any Actor)?, _ target: any AnyObject & Sendable,
    _ notification: any LifecycleNotification
  ) async throws {
    guard move(from: .driven, to: .begun) else { return }
    try await hook.body(isolation, target, notification)
  }

  private func notePlace() {
    guard let worker = HookExecutor.Worker.current else { return }
    place.withLock { $0 = (worker, worker.sequence.load(ordering: .acquiring)) }
    if !hook.memory.staysInPlace {
      beacon.store(core.beacon.send(), ordering: .relaxed)
    }
  }

  private func rememberPlace() {
    if isInPlace, HookExecutor.Worker.current != nil { hook.memory.staysInPlace = true }
  }

  /// The thread on which the hook was called is still in the same item.
  private var isInPlace: Bool {
    place.withLock { place in
      place.map { $0.worker.sequence.load(ordering: .acquiring) == $0.sequence } ?? false
    }
  }

  // MARK: The core's side

  /// The hook has returned; false when it had been given up before.
  func end() -> Bool {
    for state in [Progress.begun, .driven, .enqueued] where move(from: state, to: .ended) {
      return true
    }
    return false
  }

  /// Goes on without the hook. It has not ended: like `end`, this is for the core under its lock.
  func giveUp() -> LifecycleReport.Outcome {
    if move(from: .enqueued, to: .givenUp) { return .skipped(.noThread) }
    if move(from: .driven, to: .givenUp) { return .abandoned(.waitingForExecutor) }
    defer { progress.store(.abandoned, ordering: .releasing) }
    return .abandoned(whereabouts)
  }

  /// Takes the call back; false when the hook has begun.
  func withdraw() -> Bool {
    move(from: .enqueued, to: .givenUp) || move(from: .driven, to: .givenUp)
  }

  /// Where a hook that has begun, as far as its driver can tell, really is: a class's hook may be isolated
  /// to the main actor.
  private var whereabouts: LifecycleReport.Outcome.Progress {
    let beacon = beacon.load(ordering: .relaxed)
    if beacon == 0 || isInPlace || core.beacon.isAnswered(beacon) { return .running }
    return core.beacon.hasEverAnswered ? .waitingForExecutor : .unknown
  }

  private func move(from old: Progress, to new: Progress) -> Bool {
    progress.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing)
      .exchanged
  }
}
