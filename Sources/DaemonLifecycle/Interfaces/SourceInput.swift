// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What a source tells the core.
enum SourceInput: Sendable {
  case event(LifecycleEvent)
  /// The time that the service manager, or the user's manager, is allowed for a stop.
  case stopTimeout(Duration, isManagers: Bool = false)
  /// How long logind waits for a delay lock.
  case sleepDelay(Duration)
  /// The job that terminates the service.
  case unitJob(UnitJob?)
  /// A check of health is due; since the last one the process was stalled from outside for this long.
  case watchdogTick(stall: Duration)
  /// The source has ended, and with it its task.
  case ended(Task<Void, Never>)
  /// What is only passed on.
  case fact(LifecycleFact)
}
