// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// What is read and followed over a bus; where there is none, a line is logged.
enum BusInput: Hashable, Sendable {
  case stopTimeout, unitJob, sleep
  case unit(String)
}

extension LifecycleWiring {
  /// Adds a source for each bus: the manager of a system service is on the system bus, that of a user service on the
  /// user's; logind is on the system bus.
  mutating func connectBuses() {
    let userManager = isSupervised ? environment.userManager : nil
    guard let userManager else { return addBus(.system, busInputs, busRequests) }
    addBus(.user, busInputs.filter { $0 != .sleep }, busRequests)
    addBus(
      .system, busInputs.filter { $0 == .sleep },
      userManager: busInputs.contains(.stopTimeout) ? userManager : nil)
  }

  private mutating func addBus(
    _ address: BusAddress, _ inputs: [BusInput], _ others: (@Sendable () -> [BusRequest])? = nil,
    userManager: String? = nil
  ) {
    if inputs.isEmpty, others == nil, userManager == nil { return }
    parts.append(BusSource(address, inputs, others, userManager: userManager))
  }
}

extension LifecycleInterface {
  /// `TimeoutStopSec=` of the service, for ``LifecycleConfiguration/stopTimeout``. It arrives over D-Bus.
  public static var stopTimeout: Self { ofService("stop timeout", .stopTimeout) }

  /// The job that terminates the service: see ``LifecycleObservable/unitJob(within:)``. It arrives over D-Bus.
  public static var unitJob: Self { ofService("unit job", .unitJob) }

  /// A suspend of the machine, which is delayed until the hooks have ended if logind grants a delay lock; that
  /// requires root or polkit. It arrives over D-Bus.
  public static var sleep: Self { ofService("sleep", .sleep) }

  /// A unit of the same service manager, such as `"postgresql.service"`: the daemon is in the background until it is
  /// active. That arrives over D-Bus.
  public static func pausing(whileInactive name: String) -> Self {
    Self("unit", of: name, .service) { $0.busInputs.append(.unit(name)) }
  }

  private static func ofService(_ kind: String, _ input: BusInput) -> Self {
    Self(kind, .service) { wiring in if wiring.isSupervised { wiring.busInputs.append(input) } }
  }
}
