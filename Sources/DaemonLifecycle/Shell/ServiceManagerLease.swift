// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The right to communicate with systemd for this process: READY=1, STOPPING=1 and pings apply to the process, so only
/// one subject at a time may hold it. It ends with its holder.
final class ServiceManagerLease: Sendable {
  private struct Holder { weak var claim: ServiceManagerLease? }
  private static let holder = Mutex(Holder())

  private init() {}

  /// Takes the lease; `nil` while another subject holds it.
  static func take() -> ServiceManagerLease? {
    holder.withLock { holder in
      guard holder.claim == nil else { return nil }
      let claim = ServiceManagerLease()
      holder.claim = claim
      return claim
    }
  }
}
