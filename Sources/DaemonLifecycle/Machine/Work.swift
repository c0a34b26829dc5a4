// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// One work of the daemon: a body that is run in a task of its own, again and again, each time as another *run*.
///
/// It is the only state of it: readiness, health, status, restart and stop read this. Each method of `Work+Changes.swift`
/// takes an event in, and returns the action that follows. The shell has the body and its task.
struct Work: Sendable {
  /// One time that the body is run.
  struct Run: Sendable {
    /// It grows with each run. Events of an earlier run are ignored.
    let number: UInt64
    let began: MonotonicTime
    /// Whether it has been ready.
    var isReady: Bool
    /// The number of the last change of its readiness.
    var lastChange: UInt64 = 0
    /// When it last made progress, as of the last question.
    var progressed: MonotonicTime
    /// Whether it has made none for so long that it is stalled, and that was published.
    var isStalled = false
    /// When the shell is asked for its progress; the distant future until it has answered.
    var nextLook = MonotonicTime.distantFuture
  }

  enum State: Sendable {
    /// It does not run: it begins with the foreground, or with the launch.
    case resting
    /// It runs, and was not asked to end.
    case running(Run)
    /// It was cancelled because of a fault, and has failed when it has ended.
    case failing(Run, WorkFault)
    /// It has failed, and is run again then.
    case waiting(until: MonotonicTime)
    /// It has returned without being asked to: it begins again with the next foreground.
    case returned
    /// It was asked to finish what it has begun.
    case finishing(Run)
    /// It was cancelled, and has not ended.
    case cancelled(Run)
    /// It never runs again: it has failed for good, or in a stop, or its caller is told of the failure.
    case over(Failure)
  }

  /// An action of the shell's on its body.
  enum Action: Sendable {
    case begin(run: UInt64, isReady: Bool)
    /// Marks the run's round as ending.
    case finish(run: UInt64)
    case cancel(run: UInt64)
    /// Answers when the run last made progress.
    case askForProgress(run: UInt64)
    /// The caller that waits for its end goes on.
    case answer(Failure?)
  }

  /// Its constants, which outlive its membership.
  let member: Member
  var state = State.resting
  var lastRun: UInt64 = 0
  /// The failures over all runs: a pause does not reset them.
  var history: RestartHistory?
  /// The last failure, and how many there were, until it has run well for the policy's period. It is shown until it has run
  /// for longer than the longest delay between two of its runs.
  var lastFailure: (number: Int, failure: Failure, isShown: Bool)?
  /// Why its last run was not ready, as that has said itself.
  var reason: String?
  /// Whether a step has asked for its start, and it has not been ready since: a failure is that step's.
  var isStarting = false
  /// Whether no run begins any more.
  var isClosed = false
  /// Whether the caller's task was cancelled: the caller receives the error of the body then.
  var isCallerCancelled = false
  /// The calls that wait until it is ready, and until it has ended.
  var entering: CallID?
  var leaving: CallID?
  /// The last note for the operator, and whether its failures count, as published.
  var published: String?
  var hasFailed = false

  init(_ member: Member) {
    self.member = member
    history = member.work!.restarts.map { RestartHistory($0) }
  }

  var id: ObserverID { member.id }
  var name: ObserverName { member.name }
  var options: WorkOptions { member.work! }

  // MARK: What it is

  /// The run under way, be it asked to end or not.
  var run: Run? {
    switch state {
    case .running(let run), .failing(let run, _), .finishing(let run), .cancelled(let run): run
    case .resting, .waiting, .returned, .over: nil
    }
  }

  /// Whether it does its job, as long as its foreground lasts.
  var isReady: Bool {
    if lack != nil { return false }
    guard options.readyWithin != nil else { return true }
    return switch state {
    case .running(let run): run.isReady
    case .returned: options.mayReturn
    case .failing, .waiting: false
    // Work that was not begun counts as unentered elsewhere; work that was asked to end does not count.
    case .resting, .finishing, .cancelled, .over: true
    }
  }

  /// Why it is not ready although it goes on, as it says itself.
  var lack: String? {
    switch state {
    case .running, .failing, .waiting: reason
    case .resting, .returned, .finishing, .cancelled, .over: nil
    }
  }

  /// Whether it runs, or will be run again automatically.
  var goesOn: Bool { run != nil || isWaiting }

  /// Whether it waits to be run again.
  var isWaiting: Bool { if case .waiting = state { true } else { false } }

  /// What it has failed with for good.
  var failure: Failure? { if case .over(let failure) = state { failure } else { nil } }

  /// Whether it never runs again, and may be forgotten.
  var isForgotten: Bool {
    if case .over = state, options.hasCaller { return true }
    return isClosed && run == nil
  }

  /// Whether a stop has to end it or to report of it, where it runs throughout.
  var endsWithTheDaemon: Bool { run != nil || failure != nil }

  var isStalled: Bool {
    switch state {
    case .running(let run): run.isStalled
    // Work that ends when it is cancelled is in this state for a moment only.
    case .failing: true
    default: false
    }
  }

  // MARK: Time

  /// The time of the clock's next action.
  var deadline: MonotonicTime {
    switch state {
    case .running(let run):
      min(min(recovery(of: run), noteEnd(of: run)), min(startLimit(of: run), run.nextLook))
    case .waiting(let time): time
    default: .distantFuture
    }
  }

  /// When its failures are forgotten.
  func recovery(of run: Run) -> MonotonicTime {
    guard lastFailure != nil, let period = options.restarts?.period else { return .distantFuture }
    return run.began.advanced(by: period)
  }

  /// When its last failure is no longer shown.
  func noteEnd(of run: Run) -> MonotonicTime {
    guard lastFailure?.isShown == true, run.isReady, let delay = options.restarts?.maximumDelay
    else { return .distantFuture }
    return run.began.advanced(by: max(.seconds(1), delay))
  }

  /// When a run must be ready. Without a policy, a run that a step has waited for in vain goes on, as a hook does.
  func startLimit(of run: Run) -> MonotonicTime {
    guard let time = options.readyWithin, !run.isReady, !isStarting || options.restarts != nil
    else { return .distantFuture }
    return run.began.advanced(by: time)
  }

  // MARK: In words

  /// The note for the operator, beside the daemon's state.
  var note: String? {
    if isStalled { return stall }
    if case .returned = state, !options.mayReturn { return "\(name) has ended by itself" }
    guard let (number, failure, isShown) = lastFailure, isShown else { return nil }
    let times = number == 1 ? "once" : "\(number) times"
    let again = if case .running = state { ", and runs again" } else { "" }
    return "\(name) has failed \(times)\(again): \(failure.text)"
  }

  /// "consumer has made no progress for 5 min".
  var stall: String {
    if case .failing(_, let fault) = state { return "\(name): \(fault)" }
    return "\(name) has made \(noProgress)"
  }

  var noProgress: String { "no progress for \((options.stallsAfter ?? .zero).forReading)" }
}

/// The error of a run that threw none itself.
struct WorkFault: Error, CustomStringConvertible {
  let description: String
}
