// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A time or an event that systemd or logind reports over the bus, and its effect.
package enum SystemdInput: Sendable {
  /// The time that the service manager allows the daemon for a stop, or that the user's manager has for its own. The stop may
  /// have begun.
  case stopTimeout(Duration, isManagers: Bool = false)
  /// The service manager reads its units again, or has just done so: see `TimeExtension`.
  case managerReload
  /// How long logind waits for a delay lock.
  case sleepDelay(Duration)
}

extension LifecycleMachine {
  mutating func take(_ input: SystemdInput) {
    switch input {
    case .stopTimeout(let timeout, let isManagers): allowStop(timeout, isManagers: isManagers)
    case .managerReload: if stop.budget != nil || asked != nil { publishExtension(until: now) }
    case .sleepDelay(let delay): sleep.end = now.advanced(by: delay)
    }
  }
}
