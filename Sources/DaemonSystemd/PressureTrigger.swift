/// From when on pressure counts: tasks stalled for so long within a window.
///
///     let trigger = try PressureTrigger(.some, stall: .milliseconds(150), window: .seconds(2))
///
/// Source: the kernel's "PSI - Pressure Stall Information".
public struct PressureTrigger: Sendable, Hashable {
  /// How many tasks must be stalled for it to count.
  public enum Share: String, Sendable, Hashable {
    /// At least one task was stalled.
    case some
    /// All tasks that were not idle were stalled at once: nothing got on. Says nothing for the processors of a
    /// whole machine.
    case full
  }

  /// How many tasks must be stalled for it to count.
  public let share: Share
  /// Whole microseconds, above zero and at most ``window``.
  public let stall: Duration
  /// Whole microseconds, 500 ms to 10 s.
  public let window: Duration

  /// 200 ms in 2 s for some task: what systemd itself gives to services (systemd.resource-control(5)), and a
  /// window that the kernel lets anyone ask for.
  public static let standard = PressureTrigger(
    share: .some, stall: .milliseconds(200), window: .seconds(2))

  /// Throws ``SystemdError/invalidArgument(_:)`` for what the kernel would refuse. A process without
  /// CAP_SYS_RESOURCE may only ask for windows of 2, 4, 6, 8 or 10 s, which the kernel says when the watch is
  /// opened.
  public init(_ share: Share = .some, stall: Duration, window: Duration) throws(SystemdError) {
    guard window >= .milliseconds(500), window <= .seconds(10) else {
      throw .invalidArgument(
        "The window of a pressure trigger is \(window), but the kernel takes 0.5 s to 10 s, and of processes "
          + "without CAP_SYS_RESOURCE multiples of 2 s only.")
    }
    guard stall > .zero, stall <= window else {
      throw .invalidArgument(
        "The stall of a pressure trigger is \(stall), but it must be above zero and at most the window, "
          + "\(window).")
    }
    guard Self.isWhole(stall), Self.isWhole(window) else {
      throw .invalidArgument(
        "A pressure trigger of \(stall) in \(window) is not in whole microseconds.")
    }
    self.init(share: share, stall: stall, window: window)
  }

  private init(share: Share, stall: Duration, window: Duration) {
    self.share = share
    self.stall = stall
    self.window = window
  }

  /// What is written into a pressure file. It ends with NUL, since the kernel overwrites the last byte.
  public var bytes: [UInt8] {
    Array("\(share.rawValue) \(Self.microseconds(stall)) \(Self.microseconds(window))\0".utf8)
  }

  private static func isWhole(_ duration: Duration) -> Bool {
    duration.components.attoseconds % 1_000_000_000_000 == 0
  }

  private static func microseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
  }
}
