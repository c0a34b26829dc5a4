// SPDX-License-Identifier: Apache-2.0
/// The ways in which a daemon is controlled and observed from outside, each once: see ``LifecycleInterface``.
///
/// ```swift
/// var configuration = LifecycleConfiguration()
/// configuration.interfaces.append(.pausing(whileInactive: "postgresql.service"))
/// configuration.interfaces.append(.serviceManager(watchdog: false))
/// configuration.interfaces.remove(.sleep)
/// let lifecycle = LifecycleSubject(configuration: configuration)
/// ```
///
/// The order does not matter. Begin a list of your own with ``plain`` or ``standard``: a list without signals handles
/// none, and the start logs that.
public struct LifecycleInterfaces: Sendable, ExpressibleByArrayLiteral {
  /// No two are of one kind and about the same file or unit.
  package private(set) var all: [LifecycleInterface] = []

  /// Makes a list of these interfaces; of two of one kind, the last.
  public init(arrayLiteral interfaces: LifecycleInterface...) {
    for interface in interfaces { append(interface) }
  }

  /// The interfaces for a service: signals, the log, and all of systemd's that need no parameter.
  public static var standard: Self {
    plain + [
      .serviceManager(), .memoryPressure, .readinessDescriptor(), .stopTimeout, .unitJob, .sleep,
    ]
  }

  /// Signals and the log only: for a second subject of a process.
  public static var plain: Self { [.signals(), .log()] }

  /// Adds an interface. It replaces an interface of its kind that is about the same file or unit.
  public mutating func append(_ interface: LifecycleInterface) {
    remove(interface)
    all.append(interface)
  }

  /// Removes the interface of this kind, about this file or unit, whatever its other parameters.
  public mutating func remove(_ interface: LifecycleInterface) {
    all.removeAll { $0.isSame(as: interface) }
  }

  /// Joins two lists: of two interfaces of one kind the second's counts.
  public static func + (first: Self, second: Self) -> Self {
    second.all.reduce(into: first) { $0.append($1) }
  }

  /// Appends the interfaces of a second list.
  public static func += (first: inout Self, second: Self) { first = first + second }

  /// Whether there is one of this kind, about the same file or unit.
  package func contains(_ interface: LifecycleInterface) -> Bool {
    all.contains { $0.isSame(as: interface) }
  }

  /// What the first interface with such a role has.
  func value<Value>(_ value: (LifecycleInterface.Role) -> Value?) -> Value? {
    for interface in all { if let value = value(interface.role) { return value } }
    return nil
  }

  /// Those that depend on nothing but the daemon.
  var local: Self {
    var local = self
    local.all.removeAll { if case .local = $0.role { false } else { true } }
    return local
  }
}
