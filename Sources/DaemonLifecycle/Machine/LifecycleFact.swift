// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A fact that the core publishes to its sinks. The big ones are indirect, since a fact goes through many hands.
enum LifecycleFact: Sendable {
  /// A transition begins, at this time: before any of its hooks, and after what asked for it.
  case began(LifecycleTransition, LifecycleCause, at: MonotonicTime)
  /// A transition has lasted a while: told every second.
  indirect case progress(LifecycleProgress)
  /// A transition has ended, after so long, and where the daemon is now.
  indirect case ended(LifecycleTransition, LifecycleReport, Duration, LifecycleSnapshot)
  /// The daemon stays in the background, for other reasons than before: no transition tells of that.
  case reasonsChanged(LifecycleCause, LifecycleSnapshot)
  /// The launch is over, and the daemon goes on: it is ready.
  case launched(LifecycleSnapshot)
  /// The end is asked for, and the daemon goes on serving for so long. Then, or before, it terminates.
  case draining(LifecycleCause, Duration)
  /// The termination begins. Told once; what a transition that it overtakes still has to tell comes after it.
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
  /// A hook that had been abandoned has ended after all.
  case endedLate(String)
  /// Something that an operator should know, until it is taken back with `nil`.
  case statusNote(StatusNote, String?)
  /// Something that an operator may want to find in the log.
  case warning(String)
  /// A part that had failed has been well for a while: restarts so far no longer count.
  case recovered
  /// Something that explains what was seen, and is no problem.
  case remark(String)
  /// Hooks of a delivery beside the transitions did not complete.
  case problems([LifecycleReport.Entry])
  /// The subject is gone before its end; nothing more is told.
  case closed
  /// The daemon seems to be killed rather than stopped: does the service manager want the end? The exit waits for that.
  case seemsKilled
  /// All is over; the process ends with this.
  indirect case terminated(LifecycleExit)
}
