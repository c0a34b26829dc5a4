// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

enum LifecycleInput: Sendable {
  /// An event for the registry.
  case event(LifecycleEvent)
  /// How long the service manager waits for the end of a stop, before it kills.
  case stopTimeout(Duration)
  /// The service manager's job for the service that terminates; `nil` when there is none, or it could not be read.
  case unitJob(UnitJob?)
  /// How long logind waits for a delay lock.
  case sleepDelay(Duration)
  /// A ping is due; since the last one the process was stalled from outside for this long.
  case watchdogTick(stall: Duration)
  /// The service manager requests a reload of a daemon whose signal map has none.
  case unmappedReload(LifecycleCause)
  /// A note for the operator, until it is removed with `nil`.
  case statusNote(StatusNote, String?)
  /// A warning for the log.
  case warning(String)
}
