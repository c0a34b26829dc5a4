// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The right to communicate with systemd for this process: READY=1, STOPPING=1 and pings apply to the process, so only
/// one subject at a time may hold it. It ends with its holder.
final class ServiceManagerLease: Sendable {
  private static let isTaken = Atomic(false)

  private init() {}

  deinit { Self.isTaken.store(false, ordering: .releasing) }

  /// Takes the lease; `nil` while another subject holds it.
  static func take() -> ServiceManagerLease? {
    isTaken.exchange(true, ordering: .acquiringAndReleasing) ? nil : ServiceManagerLease()
  }
}
