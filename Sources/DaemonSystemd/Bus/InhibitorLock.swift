/// Delays or blocks what logind is about to do, for as long as it is held.
///
/// Release it when the work is done; it is released with the last reference to it too, and with the process.
/// A delay lock holds the machine back for `InhibitDelayMaxUSec` at most (5 s by default).
public final class InhibitorLock: Sendable {
  /// What is held back; combine several.
  public struct Operations: OptionSet, Sendable, Hashable {
    /// One bit an operation, in the order below.
    public let rawValue: Int
    /// Bits that are no operation are left out.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Power-off, reboot, halt and kexec.
    public static let shutdown = Operations(rawValue: 1)
    /// Suspend and hibernation.
    public static let sleep = Operations(rawValue: 2)
    /// Whatever is done to an idle machine.
    public static let idle = Operations(rawValue: 4)
    /// logind's answer to the power key.
    public static let handlePowerKey = Operations(rawValue: 8)
    /// logind's answer to the suspend key.
    public static let handleSuspendKey = Operations(rawValue: 16)
    /// logind's answer to the hibernate key.
    public static let handleHibernateKey = Operations(rawValue: 32)
    /// logind's answer to a closed lid.
    public static let handleLidSwitch = Operations(rawValue: 64)
    /// logind's answer to the reboot key.
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

  /// How a lock holds back.
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
