/// Hears what the lifecycle does: how systemd and the journal come to know of it.
///
/// Called in the order of the facts, by one thread at a time, under no lock of the core's, and possibly on
/// the listening thread: it must not wait, and runs no code of the user's.
protocol LifecycleSink: AnyObject, Sendable {
  /// It is a service manager: it wants to know of progress, and allows for more time where that is asked for.
  var isServiceManager: Bool { get }
  func hear(_ fact: LifecycleFact)
}

/// What a core tells of itself.
enum LifecycleFact: Sendable {
  /// A walk begins, at this time: before any of its hooks, and after what asked for it.
  case began(LifecycleWalk, LifecycleCause, at: MonotonicTime)
  /// A walk has lasted a while: told every second.
  case progress(LifecycleProgress)
  /// A walk has ended, after so long, and where the daemon is now.
  case ended(LifecycleWalk, LifecycleReport, Duration, LifecycleSnapshot)
  /// The daemon stays in the background, for other reasons than before: no walk tells of that.
  case reasonsChanged(LifecycleCause, LifecycleSnapshot)
  /// The launch is over, and the daemon goes on: it is ready.
  case launched(LifecycleSnapshot)
  /// The end is asked for, and the daemon goes on serving for so long. Then, or before, it terminates.
  case draining(LifecycleCause, Duration)
  /// The termination begins. Told once; what a walk that it overtakes still has to tell comes after it.
  case terminating(LifecycleCause)
  /// The service manager wants a reload, and the signal map has none: it must have an answer all the same.
  case unmappedReload(LifecycleCause, at: MonotonicTime)
  /// A hook has got more time: the service manager must allow for so much from now on.
  case extended(Duration)
  /// Executors and observers are well: the watchdog may be pinged.
  case healthy
  /// They are not, and why.
  case unhealthy(String)
  /// The machine may sleep: what its sleep asked for has been done, or there was nothing to do.
  case readyToSleep
  /// A hook that had been given up has ended after all.
  case endedLate(String)
  /// Something that an operator should know, until it is taken back with `nil`.
  case remark(LifecycleRemark, String?)
  /// Something that an operator may want to find in the log.
  case complaint(String)
  /// Hooks of a delivery beside the walks did not complete.
  case problems([LifecycleReport.Entry])
  /// The subject is gone before its end; nothing more is told.
  case closed
  /// All is over; the process ends with this.
  case terminated(LifecycleExit)
}

/// Where the daemon is.
struct LifecycleSnapshot: Sendable, Equatable {
  let state: LifecycleState
  /// By name.
  let reasons: [BackgroundReason]
}

/// How far a walk has come.
struct LifecycleProgress: Sendable {
  let walk: LifecycleWalk
  let done: Int
  let total: Int
  /// The observers whose hooks run.
  let waitingFor: [ObserverEntry.Name]
  let elapsed: Duration

  /// `stopping: 3 of 5 done, waiting for Database, 2.1 s`
  var description: String {
    var names = waitingFor.prefix(3).map(\.description).joined(separator: ", ")
    if waitingFor.count > 3 { names += " and \(waitingFor.count - 3) more" }
    let waiting = names.isEmpty ? "" : ", waiting for \(names)"
    return "\(walk.gerund): \(done) of \(total) done\(waiting), \(elapsed.inSeconds) s"
  }
}
