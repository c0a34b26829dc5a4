// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// An input of a part to the core.
package enum SourceInput: Sendable {
  case event(LifecycleEvent)
  case systemd(SystemdInput)
  /// The job that terminates the service.
  case unitJob(UnitJob?)
  /// logind's answer to the request, with this number, for a lock that keeps the machine awake: what it does not keep the
  /// machine from, and why; `nil` if nothing.
  case awake(request: UInt64, lack: String?)
  /// A check of health is due; since the last one the process was stalled from outside for this long.
  case watchdogTick(stall: Duration)
  /// The part has ended: its task is to be cancelled.
  case ended(Task<Void, Never>)
  /// A fact to pass on.
  case fact(LifecycleFact)
}
