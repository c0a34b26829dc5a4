// SPDX-License-Identifier: Apache-2.0
/// A systemd job: an operation on a unit, by the name that systemd has for it.
public struct UnitJob: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  /// systemd's word, such as `start` or `verify-active`. Source: `org.freedesktop.systemd1`(5), *JobType*.
  public let rawValue: String

  /// Makes a job from systemd's word.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The unit is stopped, and not started again.
  public static var stop: Self { Self(rawValue: "stop") }
  /// The unit is stopped and started again.
  public static var restart: Self { Self(rawValue: "restart") }
  /// The unit is stopped and started again if it is running.
  public static var tryRestart: Self { Self(rawValue: "try-restart") }

  /// Whether the unit is started again after it has stopped.
  public var isRestart: Bool { self == .restart || self == .tryRestart }

  /// systemd's word.
  public var description: String { rawValue }
}
