// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// The state of a lease, and the actions for the daemon's position. It has no lock, clock, thread or process.
///
/// The invariants:
///
/// - Only the lease brings the daemon out of the background. Only a line removes the lease's own reason, and the reason
///   is back before the elector is ended: no SIGUSR2 brings the daemon to the foreground in between.
/// - A lease that was lost is not taken again before the pause has ended. Otherwise work would go on across a time in
///   which another daemon may have been active.
/// - The elector outlives abandoned hooks: they still work for the active daemon.
struct LeaseRules {
  enum Phase {
    /// No elector runs, or it is to end.
    case idle
    /// The elector runs, and has printed no line.
    case waiting
    case held
    /// The elector has ended unasked, and the daemon may still work.
    case lost
  }

  enum Action {
    case start
    /// Add the lease's reason.
    case pause
    case end
    /// Have a stop skip everything but its saves.
    case hurry
    /// End the process, for this reason.
    case exit(String)
  }

  private static let firstDelay = Duration.milliseconds(100)
  static let longestDelay = Duration.seconds(2)

  let handover: Duration?
  private(set) var phase = Phase.idle
  /// Whether the elector, or a process that it has left, still exists.
  private(set) var hasElector = false
  /// Whether the lease is kept for a hook that was abandoned.
  private(set) var isKept = false
  /// Whether the process was to end; in a test it goes on.
  private var hasExited = false
  private var started = MonotonicTime(nanoseconds: 0)
  private var delay = firstDelay
  private var nextStart = MonotonicTime(nanoseconds: 0)
  /// When the process ends, unless the pause that follows a loss has ended.
  private var handoverEnd = MonotonicTime.distantFuture
  /// When the next action may be due, without an event.
  private(set) var deadline = MonotonicTime.distantFuture

  init(handover: Duration?) { self.handover = handover }

  // MARK: The next action

  /// Returns what is to be done now; `nil` when there is nothing.
  ///
  /// - Parameters:
  ///   - isAsked: Whether a hook waits for the elector's end.
  ///   - canStart: Whether an elector can be started; false for a mock without a grant.
  mutating func next(
    _ position: LifecycleCore.Position, isAsked: Bool, canStart: Bool, at now: MonotonicTime
  ) -> Action? {
    (isKept, deadline) = (false, .distantFuture)
    if hasExited { return nil }
    let isSettled = position.isSettled && !position.isTerminating
    // Somebody else has removed the lease's reason.
    let isExposed = !position.hasReason && !position.isTerminating && !position.isOver
    if phase != .held, isExposed { return .pause }
    switch phase {
    case .idle:
      guard canStart, isSettled, position.hasReason, !position.hasOthers, !isAsked, !hasElector
      else { break }
      if nextStart <= now { return .start }
      deadline = nextStart
    case .waiting:
      if position.hasOthers || position.isTerminating || isAsked { return .end }
    case .held:
      // Without any reason it is about to leave the background.
      let isPaused = isSettled && (position.hasReason || position.hasOthers)
      guard isPaused || isAsked || position.isOver else { break }
      guard !position.hasAbandonedHooks else {
        (isKept, deadline) = (true, now.advanced(by: .seconds(1)))
        break
      }
      return isExposed ? .pause : .end
    case .lost:
      let isPaused = position.isOver || isSettled && position.hasReason
      if isPaused, !position.hasAbandonedHooks || handover == nil {
        phase = .idle
        return next(position, isAsked: isAsked, canStart: canStart, at: now)
      }
      if handoverEnd <= now {
        // Work that may write for the lease is cut off, and the other observers still save.
        if position.isTerminating, !position.isOver {
          handoverEnd = .distantFuture
          return .hurry
        }
        hasExited = true
        return .exit(
          isPaused ? "an abandoned hook still runs" : "work or its save has not ended in time")
      }
      deadline = isPaused ? min(handoverEnd, now.advanced(by: .seconds(1))) : handoverEnd
    }
    return nil
  }

  // MARK: Events

  mutating func started(at now: MonotonicTime) {
    (phase, hasElector, started) = (.waiting, true, now)
  }

  /// It has printed its line. Returns whether the lease is held now.
  mutating func printed() -> Bool {
    guard phase == .waiting else { return false }
    phase = .held
    return true
  }

  /// The elector is to end.
  mutating func ends() { phase = .idle }

  /// The elector could not be run, or has ended. Returns whether that was unasked.
  ///
  /// - Parameter delays: Whether it is not run again at once.
  mutating func ended(at now: MonotonicTime, delays: Bool) -> Bool {
    let isUnasked = phase == .waiting || phase == .held
    if phase == .held {
      phase = .lost
      handoverEnd = handover.map { now.advanced(by: $0) } ?? .distantFuture
    } else if phase != .lost {
      phase = .idle
    }
    if isUnasked, delays { delayNext(at: now) }
    return isUnasked
  }

  /// An elector that ends at once, even with a line, or prints a line that is none, is run less and less often.
  mutating func delayNext(at now: MonotonicTime) {
    if started.duration(to: now) > Self.longestDelay { delay = Self.firstDelay }
    nextStart = now.advanced(by: delay)
    delay = min(delay * 2, Self.longestDelay)
  }

  /// No process of the elector is left.
  mutating func isGone() { hasElector = false }
}
