import Synchronization

/// A driver's way through consecutive calls of a delivery, from the moment the driver is enqueued.
///
/// Between two hooks that did what they should, the driver goes on by itself, without the core's lock. The core
/// sees where it is, and `hold()` makes it come and ask: after that the place can't change any more. A run
/// that is given up ends with the hook that it is in.
final class HookRun: Sendable {
  /// How far the call is, at the place where the run is. It only moves forward, by compare-and-exchange: whoever
  /// moves it has decided.
  enum Progress: UInt64 {
    /// Its driver is enqueued. Becomes `driven`, or `givenUp` when there is no thread.
    case enqueued
    /// Its driver runs. Becomes `begun` in the hook's own isolation, or `givenUp`.
    case driven
    /// The hook runs. Becomes `ended` or `abandoned`, or the next call's.
    case begun
    /// It never began and never will.
    case givenUp
    /// It began and has been given up; a late hook asks `isCurrent`.
    case abandoned
    case ended
  }

  /// Where the run is, in one word: the call's index, whether the driver must ask before the next, and the progress.
  private struct Place {
    static let held: UInt64 = 8
    let word: UInt64

    init(word: UInt64) { self.word = word }
    init(_ index: Int, _ progress: Progress, isHeld: Bool) {
      word = UInt64(index) << 4 | (isHeld ? Self.held : 0) | progress.rawValue
    }
    var index: Int { Int(word >> 4) }
    var isHeld: Bool { word & Self.held != 0 }
    var progress: Progress { Progress(rawValue: word & 7) ?? .ended }
  }

  /// The most calls of one run: what is noted between two looks of the core.
  static let longest = 128

  let core: LifecycleCore
  let delivery: Delivery
  /// The first call, and the one after the last.
  let range: Range<Int>
  private let word: Atomic<UInt64>
  private let hookDeadline: Int64
  /// When the current call began and when it is cancelled. Written by the driver as it goes on, and by the core
  /// while it holds the run; read by anyone.
  private let beganAt: Atomic<Int64>
  private let deadlineAt: Atomic<Int64>
  /// How long each call took, from the first. Written by the driver before it moves on, read by the core up to
  /// where the run was then.
  nonisolated(unsafe) private let durations: UnsafeMutablePointer<Int64>
  /// Where a hook was called, to tell whether it still occupies that thread.
  private let spot = Mutex<(spot: HookExecutor.Spot, worker: HookExecutor.Worker?)?>(nil)
  /// The same, for the driver alone.
  nonisolated(unsafe) private var lastSpot: HookExecutor.Spot?
  private let thrown = Mutex<String?>(nil)
  /// The beacon that went to the main actor before the call; 0: none was needed.
  private let beacon = Atomic<UInt64>(0)

  // Guarded by the core's lock.

  /// `nil` for the body of `run`, which has its own task.
  nonisolated(unsafe) var driver: HookDriver?
  /// The current call was cancelled, and is given up at `giveUpAt`.
  nonisolated(unsafe) private(set) var isCancelled = false
  nonisolated(unsafe) private var giveUpAt = MonotonicTime.distantFuture
  /// From cancellation to abandonment.
  nonisolated(unsafe) var grace: Duration
  /// Its index in the delivery.
  nonisolated(unsafe) var slot = 0

  init(
    _ range: Range<Int>, of delivery: Delivery, began: MonotonicTime, deadline: MonotonicTime,
    grace: Duration, progress: Progress = .enqueued, core: LifecycleCore
  ) {
    self.core = core
    self.delivery = delivery
    self.range = range
    self.grace = grace
    // A single call has no next: its driver always asks.
    word = Atomic(Place(range.lowerBound, progress, isHeld: range.count < 2).word)
    hookDeadline = core.configuration.hookDeadline.saturatedNanoseconds
    beganAt = Atomic(began.nanoseconds)
    deadlineAt = Atomic(deadline.nanoseconds)
    durations = .allocate(capacity: range.count < 2 ? 0 : range.count)
  }

  deinit { durations.deallocate() }

  // MARK: Where it is

  private var place: Place { Place(word: word.load(ordering: .acquiring)) }

  private func change(_ old: Place, to new: Place) -> Bool {
    word.compareExchange(
      expected: old.word, desired: new.word, ordering: .acquiringAndReleasing
    ).exchanged
  }

  var step: LifecycleStep { delivery.step }
  var index: Int { place.index }
  var isBody: Bool { delivery.calls.members.isEmpty }
  /// Of the current call.
  var entry: ObserverEntry { isBody ? .body : delivery.calls.members[index].entry }
  var began: MonotonicTime { MonotonicTime(nanoseconds: beganAt.load(ordering: .relaxed)) }
  var deadline: MonotonicTime {
    MonotonicTime(nanoseconds: deadlineAt.load(ordering: .relaxed))
  }
  /// What the clock does next: cancels the call, or gives it up.
  var next: MonotonicTime { isCancelled ? giveUpAt : deadline }

  func isCurrent(_ index: Int) -> Bool {
    let place = place
    guard place.index == index else { return false }
    switch place.progress {
    case .enqueued, .driven, .begun: return true
    case .givenUp, .abandoned, .ended: return false
    }
  }

  // MARK: The driver's side

  /// Calls hook after hook; returns the run to go on with when the core had to be asked.
  func drive(_ driver: HookDriver) async -> HookRun? {
    guard move(from: .enqueued, to: .driven) else {
      return core.ended(self, .skipped(.noThread), driver)
    }
    while true {
      let scope = HookScope(self, at: index)
      let outcome = await HookScope.$current.withValue(scope) {
        scope.remember()
        return await callAll(in: scope)
      }
      if let outcome { return core.ended(self, outcome, driver) }
    }
  }

  /// How the last hook came out, when the core must be asked; `nil` when the next one needs another scope.
  ///
  /// Each `await` of this costs a look for the executor to go on with, so there is one for each hook.
  nonisolated(nonsending) private func callAll(
    in scope: HookScope
  ) async -> LifecycleReport.Outcome? {
    while true {
      let index = index
      let entry = delivery.calls.members[index].entry
      let hook = delivery.calls.members[index].hook
      guard let target = entry.target else { return .skipped(.gone) }
      do {
        if let asActor = entry.asActor, hook.isMethod {
          noBeaconIsNeeded()
          try await call(hook, on: asActor(target), target, index)
        } else {
          noteSpot(hook)
          if move(from: .driven, to: .begun) {
            try await hook.call(target, step, LifecycleContext(run: self, index: index))
            rememberSpot(hook)
          }
        }
      } catch {
        // Here, since it is user code: on the hook's driver, within the hook's time.
        let text = "\(error)"
        thrown.withLock { $0 = text }
        return .failed(error)
      }
      guard goOn() else { return .completed }
      guard scope.move(to: index + 1) else { return nil }
    }
  }

  /// In the isolation of the hook: once this has begun it is on its actor, and one that was given up while
  /// it waited for its actor does not begin.
  private func call(
    _ hook: Hook, on _: isolated any Actor, _ target: any AnyObject & Sendable, _ index: Int
  ) async throws {
    guard move(from: .driven, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(run: self, index: index))
  }

  /// Moves on to the next call without the core; false when the core must be asked.
  private func goOn() -> Bool {
    let here = place
    let next = here.index + 1
    guard !here.isHeld, next < range.upperBound else { return false }
    let entry = delivery.calls.members[next].entry
    guard !entry.needsCore else { return false }
    let began = beganAt.load(ordering: .relaxed)
    let now = core.now.nanoseconds
    durations[here.index - range.lowerBound] = now - began
    beganAt.store(now, ordering: .relaxed)
    let (deadline, isNever) = now.addingReportingOverflow(hookDeadline)
    deadlineAt.store(isNever ? .max : deadline, ordering: .relaxed)
    if change(here, to: Place(next, .driven, isHeld: false)) { return true }
    // Held meanwhile: the call that has just ended is the last that the core sees.
    beganAt.store(began, ordering: .relaxed)
    return false
  }

  /// What the error that the hook threw says of itself.
  var errorText: String? { thrown.withLock { $0 } }

  private func noteSpot(_ hook: Hook) {
    guard let here = HookExecutor.Spot.current else { return }
    if here != lastSpot {
      lastSpot = here
      spot.withLock { $0 = (here, HookExecutor.Worker.current) }
    }
    if !hook.staysInPlace {
      beacon.store(core.beacon.send(), ordering: .relaxed)
    } else {
      noBeaconIsNeeded()
    }
  }

  /// Forgets that of an earlier hook.
  private func noBeaconIsNeeded() {
    if beacon.load(ordering: .relaxed) != 0 { beacon.store(0, ordering: .relaxed) }
  }

  private func rememberSpot(_ hook: Hook) {
    guard !hook.staysInPlace else { return }
    if let lastSpot, HookExecutor.Spot.current == lastSpot { hook.staysInPlace = true }
  }

  /// The thread on which the hook was called is still in the same item.
  private var isInPlace: Bool {
    spot.withLock { spot in
      spot.map { $0.worker?.sequence.load(ordering: .acquiring) == $0.spot.sequence } ?? false
    }
  }

  // MARK: The core's side, under its lock

  /// From now on the driver asks before the next call.
  func hold() { word.bitwiseOr(Place.held, ordering: .acquiringAndReleasing) }

  /// How long the calls before the current one took. Of a run that is held, which happens once.
  var completed: [(index: Int, duration: Duration)] {
    (range.lowerBound..<index).map { ($0, .nanoseconds(durations[$0 - range.lowerBound])) }
  }

  /// The hook has returned; false when it had been given up before.
  func end() -> Bool {
    for state in [Progress.begun, .driven, .enqueued] where move(from: state, to: .ended) {
      return true
    }
    return false
  }

  func limit(to deadline: MonotonicTime) {
    if deadline < self.deadline { set(deadline: deadline) }
  }

  func set(deadline: MonotonicTime) {
    deadlineAt.store(deadline.nanoseconds, ordering: .relaxed)
  }

  func markCancelled(at now: MonotonicTime) {
    isCancelled = true
    giveUpAt = now.advanced(by: grace)
  }

  /// No later than at `end`.
  func giveUp(by end: MonotonicTime) { giveUpAt = min(giveUpAt, end) }

  /// Goes on without the hook. It has not ended: this is not its end.
  func giveUp() -> LifecycleReport.Outcome {
    if move(from: .enqueued, to: .givenUp) { return .skipped(.noThread) }
    if move(from: .driven, to: .givenUp) { return .abandoned(.waitingForExecutor) }
    _ = move(from: .begun, to: .abandoned)
    return .abandoned(whereabouts)
  }

  /// It was given up before its hook had begun, and the hook never will.
  var neverBegins: Bool { place.progress == .givenUp }

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

  /// Moves the current call on, whether the run is held or not.
  private func move(from old: Progress, to new: Progress) -> Bool {
    var place = place
    while place.progress == old {
      if change(place, to: Place(place.index, new, isHeld: place.isHeld)) { return true }
      place = self.place
    }
    return false
  }
}
