// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// Where a lease is, and what follows from where the daemon is. It has no lock, clock, thread or process.
///
/// The invariants:
///
/// - The daemon leaves the background by the lease alone. Only a line removes the lease's own reason, and that is there again
///   before the elector is ended: no SIGUSR2 brings the daemon to the foreground in between.
/// - A lease that was lost is not taken again before the pause has ended. Work would go on across a time in which another
///   daemon may have been active.
/// - The elector outlives hooks that were abandoned: what they do is still the active one's.
struct LeaseRules {
  enum Phase {
    /// None, or it is to end.
    case idle
    /// The elector runs, and has printed no line.
    case waiting
    case held
    /// The elector has ended by itself, and the daemon may still work.
    case lost
  }

  enum Action {
    case start
    /// Add the lease's reason.
    case pause
    case end
    /// Leave a stop nothing but its saves.
    case hurry
    /// End the process: why.
    case exit(String)
  }

  private static let firstDelay = Duration.milliseconds(100)
  static let longestDelay = Duration.seconds(2)

  let handover: Duration?
  private(set) var phase = Phase.idle
  /// Whether an elector, or what it has left, is there.
  private(set) var hasElector = false
  /// Whether the lease is kept for a hook that was abandoned.
  private(set) var isKept = false
  /// Whether the process was told to end; one of a test goes on.
  private var hasExited = false
  private var started = MonotonicTime(nanoseconds: 0)
  private var delay = firstDelay
  private var nextStart = MonotonicTime(nanoseconds: 0)
  /// When the process ends, unless the pause that follows a loss has ended.
  private var handoverEnd = MonotonicTime.distantFuture
  /// When the next action may be due, without an event.
  private(set) var deadline = MonotonicTime.distantFuture

  init(handover: Duration?) { self.handover = handover }

  // MARK: What follows

  /// Returns what is to be done now; `nil` when there is nothing.
  ///
  /// - Parameters:
  ///   - isAsked: Whether a hook waits for the elector's end.
  ///   - canStart: Whether there is an elector to be started.
  mutating func next(
    _ position: LifecycleCore.Position, isAsked: Bool, canStart: Bool, at now: MonotonicTime
  ) -> Action? {
    (isKept, deadline) = (false, .distantFuture)
    if hasExited { return nil }
    let isSettled = position.isSettled && !position.isTerminating
    // Somebody else has removed it.
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
        // What may write for it is cut off, and others still save.
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

  // MARK: What happens

  mutating func started(at now: MonotonicTime) {
    (phase, hasElector, started) = (.waiting, true, now)
  }

  /// It has printed its line. Returns whether the lease is held now.
  mutating func printed() -> Bool {
    guard phase == .waiting else { return false }
    phase = .held
    return true
  }

  /// It is to end.
  mutating func ends() { phase = .idle }

  /// It could not be run, or has ended. Returns whether that was not asked for.
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

  /// One that ends at once, even with a line, or prints what is none, is not run more and more often.
  mutating func delayNext(at now: MonotonicTime) {
    if started.duration(to: now) > Self.longestDelay { delay = Self.firstDelay }
    nextStart = now.advanced(by: delay)
    delay = min(delay * 2, Self.longestDelay)
  }

  /// Nothing of it is left.
  mutating func isGone() { hasElector = false }
}
