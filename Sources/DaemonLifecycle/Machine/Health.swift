// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The health check of the watchdog: do Swift's executors respond, and are the observers healthy?
struct Health: Sendable {
  /// The executors that are checked besides the observers.
  enum Answer: Sendable {
    case pool(round: UInt64)
    /// It is asked once at a time, so its answer counts for the check under way, whichever asked.
    case mainActor
  }

  /// One check, from its beginning until all have responded.
  private struct Round: Sendable {
    let number: UInt64
    let began: MonotonicTime
    /// Whether Swift's executors are being checked; false when no thread was available for that.
    var isAsked = false
    var waitsForPool = true
    var waitsForMainActor: Bool
    var waitsForObservers = true
    /// The problems that observers have reported.
    var problems: [String] = []
    /// The time at which a missing response is reported; `nil` once it was.
    var silenceDeadline: MonotonicTime?
    /// Until when answers are waited for once more; `nil` while no timer has fired late.
    var patienceEnd: MonotonicTime?

    var isOver: Bool { !waitsForPool && !waitsForMainActor && !waitsForObservers }

    var silence: String {
      var names: [String] = []
      if waitsForPool { names.append("Swift's global executor") }
      if waitsForMainActor { names.append("the main actor") }
      if waitsForObservers { names.append("an observer's checkHealth") }
      return names.joined(separator: ", ") + (names.count == 1 ? " does" : " do") + " not answer"
    }
  }

  /// How long the service manager waits for a ping; `nil` without a watchdog.
  let period: Duration?
  /// The check under way; `nil` while stopping.
  private var round: Round?
  private var lastNumber: UInt64 = 0
  /// Whether READY was sent, which arms systemd's watchdog.
  private(set) var isArmed = false
  /// Whether the main actor has ever responded; false where nothing runs its queue, which is then not waited for.
  private var mainActorResponds = false
  /// Whether the main actor was asked and has not responded.
  var isMainActorAsked = false
  /// Whether the next tick sends a ping without a check, since the last check has succeeded.
  private var mayOmitCheck = false
  /// Earlier restarts no longer count when no check has failed for so long.
  private static let recoveryTime = Duration.seconds(60)
  /// When that will be; the distant future where nobody counts them, and once they do not.
  private var recovery = MonotonicTime.distantFuture
  /// The time of the last success, moved on by the time in which the process was stalled from outside.
  private var lastHealthy = MonotonicTime(nanoseconds: 0)
  /// Whether the last check that ended has failed, and when the last one began.
  private var hasFailed = false
  private var lastBegan: MonotonicTime?

  init(period: Duration?) { self.period = period }

  var isChecking: Bool { round != nil }
  /// The missing response to the check under way: "the main actor does not answer".
  var unanswered: String? { round?.silence }
  var deadline: MonotonicTime { min(recovery, round?.silenceDeadline ?? .distantFuture) }

  mutating func arm(at now: MonotonicTime, countsRestarts: Bool = false) {
    isArmed = true
    lastHealthy = now
    if countsRestarts { recovery = now.advanced(by: Self.recoveryTime) }
  }

  /// Accounts for a stall of the process from outside, which counts neither against it nor in its favour. systemd's
  /// time-out may be about to end, so a daemon that was healthy before sends a ping at once: returns true for that.
  mutating func forgive(_ stall: Duration, at now: MonotonicTime) -> Bool {
    guard let period else { return false }
    lastHealthy = lastHealthy.advanced(by: stall)
    return lastHealthy.duration(to: now) < period
  }

  /// Whether a tick begins a check. The one after a success need not, unless there was a stall: a check costs several
  /// context switches. A daemon that hangs after it has answered gets one ping more, and systemd ends it after at most
  /// one and a half periods.
  mutating func nextTickChecks(after stall: Duration) -> Bool {
    defer { mayOmitCheck = false }
    return !mayOmitCheck || stall > .zero
  }

  /// The number of the new check; `nil` while one is under way.
  mutating func begin(at now: MonotonicTime) -> UInt64? {
    guard round == nil else { return nil }
    lastNumber += 1
    lastBegan = now
    round = Round(
      number: lastNumber, began: now, waitsForMainActor: mainActorResponds,
      silenceDeadline: period.map { now.advanced(by: $0 / 4) })
    return lastNumber
  }

  // MARK: Probes

  /// The period of checks that only probes ask for.
  static let probedPeriod = Duration.seconds(30)

  /// Whether the last check was successful, and the one under way is not late.
  func isHealthy(at now: MonotonicTime) -> Bool {
    let late = round.map { $0.began.duration(to: now) > period ?? Self.probedPeriod } ?? false
    return !hasFailed && !late
  }

  /// Whether a probe begins a check: several may ask, and a check costs several context switches.
  func isDue(at now: MonotonicTime) -> Bool {
    isArmed && lastBegan.map { $0.duration(to: now) >= .seconds(5) } ?? true
  }

  /// The check that Swift's executors are still to be asked for.
  var unasked: UInt64? { round.flatMap { $0.isAsked ? nil : $0.number } }

  mutating func asked(_ number: UInt64) {
    isMainActorAsked = true
    if round?.number == number { round.update { $0.isAsked = true } }
  }

  mutating func receive(_ answer: Answer, at now: MonotonicTime) -> LifecycleFact? {
    switch answer {
    case .pool(let number):
      guard round?.number == number else { return nil }
      round.update { $0.waitsForPool = false }
    case .mainActor:
      (mainActorResponds, isMainActorAsked) = (true, false)
      round.update { $0.waitsForMainActor = false }
    }
    return verdict(at: now)
  }

  mutating func observersAnswered(_ problems: [String], at now: MonotonicTime) -> LifecycleFact? {
    round.update { round in
      round.waitsForObservers = false
      round.problems = problems
    }
    return verdict(at: now)
  }

  /// Who has not answered, when it is time to say so; and once, that the daemon has recovered.
  mutating func timePassed(at now: MonotonicTime) -> LifecycleFact? {
    if recovery <= now {
      // The check under way may be one that hangs.
      recovery = isChecking ? now.advanced(by: Self.recoveryTime) : .distantFuture
      if !isChecking { return .recovered }
    }
    guard let late = round, let deadline = late.silenceDeadline, deadline <= now else { return nil }
    let end = patience(after: deadline, at: now)
    round.update { $0.silenceDeadline = end }
    return end == nil ? .unhealthy(late.silence) : nil
  }

  /// Until when a missing answer is waited for once more, when its time is over: if the timer fired late, after a stall or on
  /// a busy machine, that it is missing proves nothing. Once for each check, or a machine that stays busy hears of none.
  mutating func patience(after deadline: MonotonicTime, at now: MonotonicTime) -> MonotonicTime? {
    guard let period, let round, deadline.duration(to: now) > period / 8 else { return nil }
    let end = round.patienceEnd ?? now.advanced(by: period / 4)
    self.round.update { $0.patienceEnd = end }
    return end > now ? end : nil
  }

  /// Ends the checks, since the termination begins: pings are sent without a check.
  mutating func end() { (round, recovery) = (nil, .distantFuture) }

  private mutating func verdict(at now: MonotonicTime) -> LifecycleFact? {
    guard let answered = round, answered.isOver else { return nil }
    round = nil
    hasFailed = !answered.problems.isEmpty
    // Also where a silence was reported before.
    let wasSilent = period != nil && answered.silenceDeadline == nil
    if wasSilent || !answered.problems.isEmpty, recovery < .distantFuture {
      recovery = now.advanced(by: Self.recoveryTime)
    }
    guard answered.problems.isEmpty else {
      return .unhealthy(answered.problems.joined(separator: "; "))
    }
    lastHealthy = now
    mayOmitCheck = true
    return .healthy
  }
}
