/// Delays or blocks what logind is about to do, for as long as it is held.
///
/// Release it when the work is done; it is released with the last reference to it too, and with the process.
/// A delay lock holds the machine back for `InhibitDelayMaxUSec` at most (5 s by default).
public final class InhibitorLock: Sendable {
  /// What is held back; combine several.
  public struct Operations: OptionSet, Sendable, Hashable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static let shutdown = Operations(rawValue: 1)
    public static let sleep = Operations(rawValue: 2)
    public static let idle = Operations(rawValue: 4)
    public static let handlePowerKey = Operations(rawValue: 8)
    public static let handleSuspendKey = Operations(rawValue: 16)
    public static let handleHibernateKey = Operations(rawValue: 32)
    public static let handleLidSwitch = Operations(rawValue: 64)
    public static let handleRebootKey = Operations(rawValue: 128)

    private static let words = [
      "shutdown", "sleep", "idle", "handle-power-key", "handle-suspend-key", "handle-hibernate-key",
      "handle-lid-switch", "handle-reboot-key",
    ]

    /// logind's words, joined by colons.
    var text: String {
      Self.words.enumerated().filter { rawValue & (1 << $0.offset) != 0 }.map(\.element)
        .joined(separator: ":")
    }
  }

  public enum Mode: String, Sendable, Hashable {
    /// For a limited time; of sleep and shutdown only.
    case delay
    /// Until it is released.
    case block
  }

  /// logind holds the other end, and sees that this one is closed.
  private let descriptor: BusDescriptor

  init(_ descriptor: BusDescriptor) { self.descriptor = descriptor }

  /// Lets the operation go on. Does nothing the second time; from any thread.
  public func release() { descriptor.close() }

  /// Whether it is not released yet.
  public var isHeld: Bool { descriptor.isOpen }
}
