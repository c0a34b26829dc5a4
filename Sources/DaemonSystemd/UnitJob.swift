// SPDX-License-Identifier: Apache-2.0
/// A systemd job: an operation on a unit, by the types of systemd's jobs.
public enum UnitJob: Sendable, Hashable {
  /// The unit is stopped, and not started again.
  case stop
  /// The unit is stopped and started again.
  case restart
  /// The unit is stopped and started again if it is running.
  case tryRestart
  /// Another type, such as `start`.
  case other(String)

  package init(_ word: String) {
    self =
      switch word {
      case "stop": .stop
      case "restart": .restart
      case "try-restart": .tryRestart
      default: .other(word)
      }
  }

  /// Whether the unit is started again after it has stopped.
  public var isRestart: Bool { self == .restart || self == .tryRestart }
}
