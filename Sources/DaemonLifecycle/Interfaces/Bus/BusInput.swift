// SPDX-License-Identifier: Apache-2.0
package import DaemonSystemd

/// A value to read and follow over a bus; without a bus, a line is logged.
package struct BusInput: Sendable {
  /// Those that are more than a request.
  enum Kind { case stopTimeout, unitJob, sleep, other }

  var kind = Kind.other
  let request: @Sendable (BusInbox, SleepFollower) -> BusRequest

  static let stopTimeout = BusInput(kind: .stopTimeout) { inbox, _ in .stopTimeout(inbox) }
  static let unitJob = BusInput(kind: .unitJob) { inbox, _ in .unitJob(inbox) }
  static let sleep = BusInput(kind: .sleep) { _, sleep in sleep.request }
  static func unit(_ name: String) -> BusInput { BusInput { inbox, _ in .unit(name, inbox) } }
  static func awake(because reason: String, request: UInt64) -> BusInput {
    BusInput { inbox, _ in .awake(because: reason, request: request, inbox) }
  }
  /// A request of another module, which takes the reply itself.
  package static func other(_ request: @escaping @Sendable () -> BusRequest) -> BusInput {
    BusInput { _, _ in request() }
  }
}

extension LifecycleWiring {
  /// Adds a source for each bus: the manager of a system service is on the system bus, that of a user service on the
  /// user's; logind is on the system bus.
  mutating func connectBuses() {
    let userManager = isSupervised ? environment.userManager : nil
    guard let userManager else { return addBus(.system, busInputs) }
    addBus(.user, busInputs.filter { $0.kind != .sleep })
    addBus(
      .system, busInputs.filter { $0.kind == .sleep },
      userManager: busInputs.contains { $0.kind == .stopTimeout } ? userManager : nil)
  }

  private mutating func addBus(
    _ address: BusAddress, _ inputs: [BusInput], userManager: String? = nil
  ) {
    if inputs.isEmpty, userManager == nil { return }
    parts.append(BusSource(address, inputs, userManager: userManager))
  }
}

extension LifecycleInterface {
  /// `TimeoutStopSec=` of the service, for ``LifecycleConfiguration/stopTimeout``. It arrives over D-Bus.
  public static var stopTimeout: Self { ofService("stop timeout", .stopTimeout) }

  /// The job that terminates the service: see ``LifecycleObservable/unitJob(within:)``. It arrives over D-Bus.
  public static var unitJob: Self { ofService("unit job", .unitJob) }

  /// A sleep of the machine. It waits until the hooks have ended, if logind grants a delay lock; that requires root or
  /// polkit. It arrives over D-Bus.
  public static var sleep: Self { ofService("sleep", .sleep) }

  /// A unit of the same service manager, such as `"postgresql.service"`: the daemon is in the background until it is
  /// active. Its state arrives over D-Bus.
  public static func pausing(whileInactive name: String) -> Self {
    Self("unit", of: name, .service) { $0.busInputs.append(.unit(name)) }
  }

  private static func ofService(_ kind: String, _ input: BusInput) -> Self {
    Self(kind, .service) { wiring in if wiring.isSupervised { wiring.busInputs.append(input) } }
  }
}
