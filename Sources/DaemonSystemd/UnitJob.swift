// SPDX-License-Identifier: Apache-2.0
/// What systemd is about to do with a unit, by its words for the types of jobs.
public enum UnitJob: Sendable, Hashable {
  /// It is started.
  case start
  /// It is stopped, and stays so.
  case stop
  /// It is stopped and started again.
  case restart
  /// It reads its configuration again.
  case reload
  /// It is stopped and started again if it runs.
  case tryRestart
  /// Another type, such as `verify-active`.
  case other(String)

  package init(_ word: String) {
    self =
      switch word {
      case "start": .start
      case "stop": .stop
      case "restart": .restart
      case "reload": .reload
      case "try-restart": .tryRestart
      default: .other(word)
      }
  }

  /// Whether the unit is started again after it has stopped.
  public var isRestart: Bool { self == .restart || self == .tryRestart }

  /// Whether the unit is stopped, for good or to be started again.
  package var stopsUnit: Bool { self == .stop || isRestart }
}
