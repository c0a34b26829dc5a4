// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The preservation of a process, made at the first access: a daemon that does not use it leaves its descriptors to
/// other code.
final class PreservationSlot: Sendable {
  /// Set by the first success, permanently.
  private let preservation = Mutex<Preservation?>(nil)
  private let make: @Sendable () throws(SystemdError) -> Preservation

  init(_ make: @escaping @Sendable () throws(SystemdError) -> Preservation) { self.make = make }

  /// Makes a slot from the environment; without notifications there is no store.
  convenience init(_ configuration: LifecycleConfiguration) {
    self.init { () throws(SystemdError) in
      let environment = configuration.environment
      // A `NOTIFY_SOCKET` that is no address is ignored.
      if configuration.interfaces.contains(.serviceManager()),
        (try? environment.notifySocket) != nil
      {
        return try Preservation(environment)
      }
      return Preservation(
        passed: try .take(from: environment), notify: try NotifySocket(address: nil), limit: 0)
    }
  }

  func get() throws(SystemdError) -> Preservation {
    try preservation.withLock { preservation throws(SystemdError) in
      if let preservation { return preservation }
      let made = try make()
      preservation = made
      return made
    }
  }
}
