// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// What a part tells the core.
package enum SourceInput: Sendable {
  case event(LifecycleEvent)
  case systemd(SystemdInput)
  /// The job that terminates the service.
  case unitJob(UnitJob?)
  /// A check of health is due; since the last one the process was stalled from outside for this long.
  case watchdogTick(stall: Duration)
  /// It has ended, and with it its task.
  case ended(Task<Void, Never>)
  /// What is only passed on.
  case fact(LifecycleFact)
}
