// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The preservation of a process, taken over when somebody asks for it: a daemon that never does leaves its descriptors
/// to whoever takes them.
final class PreservationSlot: Sendable {
  /// Set by the first success, for good.
  private let preservation = Mutex<Preservation?>(nil)
  private let make: @Sendable () throws(SystemdError) -> Preservation

  init(_ make: @escaping @Sendable () throws(SystemdError) -> Preservation) { self.make = make }

  /// What the environment tells of; without notifications there is no store.
  convenience init(_ systemd: SystemdConfiguration) {
    self.init { () throws(SystemdError) in
      if systemd.notifies { return try Preservation(systemd.environment) }
      let store = DescriptorStore(notify: try NotifySocket(address: nil), limit: 0)
      return Preservation(
        passed: try PassedDescriptors.take(from: systemd.environment), store: store)
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
