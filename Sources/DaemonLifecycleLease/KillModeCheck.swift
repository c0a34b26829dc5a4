// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// Reads how systemd ends the service's processes, and warns where that ends the elector together with the daemon. On a
/// connection of its own, so that only daemons with a lease have it. Source: org.freedesktop.systemd1(5).
final class KillModeCheck: LifecyclePart {
  private let connection: Mutex<BusConnection>

  init(
    _ lease: Lease, _ environment: ServiceEnvironment, _ warn: @escaping @Sendable (String) -> Void
  ) {
    let request = BusRequest(
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
      // Until systemd answers. Other lines say that there is no bus.
      case .failure: return .again
      case .signal: return .done
      }
    }
    connection = Mutex(BusConnection(environment.userManager == nil ? .system : .user, [request]))
  }

  func open() throws -> MonotonicTime? {
    try connection.withLock { connection in
      try connection.start()
      return connection.deadline
    }
  }

  var descriptors: [PolledDescriptor] {
    [PolledDescriptor(number: connection.withLock { $0.fileDescriptor })]
  }

  var outlivesLoss: Bool { false }

  func read(_: PolledDescriptor, _ take: (SourceInput) -> Void) -> MonotonicTime? { wake(take) }

  func wake(_: (SourceInput) -> Void) -> MonotonicTime? {
    connection.withLock { connection in
      connection.process()
      return connection.deadline
    }
  }

  func close() -> [SourceInput] {
    connection.withLock { $0.close() }
    return []
  }
}
