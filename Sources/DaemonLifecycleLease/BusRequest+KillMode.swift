// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

extension BusRequest {
  /// Reads how systemd ends the service's processes, and warns if it ends the elector together with the daemon. Source:
  /// org.freedesktop.systemd1(5).
  static func killMode(
    _ lease: Lease, _ warn: @escaping @Sendable (String) -> Void
  ) -> BusRequest {
    BusRequest(
      .systemd,
      query: .get("KillMode", of: "/org/freedesktop/systemd1/unit/self", "Service", .systemd)
    ) { event in
      switch event {
      case .reply(let values, _):
        guard case .variant(.string(let mode))? = values.only else { return .malformed }
        if mode == "control-group" {
          warn(
            "The lease \(lease.name): systemd ends its elector together with the daemon, before the save: set KillMode=mixed."
          )
        }
        return .done
      // Asks again until systemd answers. Other lines report a missing bus.
      case .failure: return .again
      case .signal: return .done
      }
    }
  }
}
