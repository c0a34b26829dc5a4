// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// A fact that the core publishes to its parts. Big ones are indirect, since facts are copied often.
package enum LifecycleFact: Sendable {
  /// The daemon has been set up for this long, and is launched afterwards.
  case settingUp(Duration)
  /// A transition begins, at this time: after its request, and before any of its hooks.
  case began(LifecycleTransition, LifecycleCause, at: MonotonicTime)
  /// A transition goes on; published every second.
  indirect case progress(LifecycleProgress)
  /// A transition has ended, after this duration; the snapshot is the state after it.
  indirect case ended(LifecycleTransition, LifecycleReport, Duration, LifecycleSnapshot)
  /// Without a transition the daemon stays in the background for other reasons than before, or in the foreground with
  /// all observers again.
  case positionChanged(LifecycleCause, LifecycleSnapshot)
  /// The launch is over, and the daemon goes on: it is ready.
  case launched
  /// A stop was requested, and the daemon goes on serving for at most this duration before it terminates.
  case draining(LifecycleCause, Duration)
  /// The termination begins; published once. Facts of a transition that it overtakes may follow.
  case terminating(LifecycleCause)
  /// The service manager requests a reload, and the signal map has none: it must be answered all the same.
  case unmappedReload(at: MonotonicTime)
  /// A hook's deadline was extended: the service manager must allow this much time from now on.
  case extended(Duration)
  /// Executors and observers are healthy: the watchdog may be pinged.
  case healthy
  /// They are not healthy, for this reason.
  case unhealthy(String)
  /// The machine may sleep: the deliveries for it have ended, or there were none.
  case readyToSleep
  /// A note for the operator, until it is removed with `nil`.
  case statusNote(StatusNote, String?)
  /// A warning for the log.
  case warning(String)
  /// The daemon, or a part that had failed, has run without a failure for a while: earlier restarts no longer count.
  case recovered
  /// An explanation for the log, which is no problem.
  case info(String)
  /// Hooks of a delivery beside the transitions did not complete.
  case problems([LifecycleReport.Entry])
  /// The subject was deallocated before its end; this is the last fact.
  case closed
  /// The daemon has terminated; the process ends with this exit.
  indirect case terminated(LifecycleExit)
}
