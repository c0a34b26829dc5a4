// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

enum LifecycleInput: Sendable {
  /// A fact for the registry.
  case event(LifecycleEvent)
  /// How long the service manager waits for the end of a stop, before it kills.
  case stopTimeout(Duration)
  /// What the service manager is doing with the service that terminates; `nil`: nothing, or nobody could be asked.
  case unitJob(UnitJob?)
  /// How long logind waits for a delay lock.
  case sleepDelay(Duration)
  /// It is time for a ping; the process was stalled from outside for so long since the last one.
  case watchdogTick(stall: Duration)
  /// The service manager asks for a reload in a daemon whose signal map has none.
  case unmappedReload(LifecycleCause)
  /// Something that an operator should know, until it is taken back with `nil`.
  case statusNote(StatusNote, String?)
  /// Something that an operator may want to find in the log.
  case warning(String)
}
