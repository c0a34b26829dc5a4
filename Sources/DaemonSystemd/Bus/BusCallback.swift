import CLinux

/// What sd-bus calls back for one slot.
///
/// sd-bus gets an unretained pointer to it; `BusConnection.callbacks` holds it until after the slot was
/// unref'd, and both functions hold it while it works.
final class BusCallback {
  /// The reference we own; `nil` once given back.
  var slot: OpaquePointer?
  private let message: (OpaquePointer) -> Void
  private let installed: (OpaquePointer) -> Void
  /// Called instead of an answer, when the connection ends.
  let ended: (BusError) -> Void

  init(
    message: @escaping (OpaquePointer) -> Void,
    installed: @escaping (OpaquePointer) -> Void = { _ in },
    ended: @escaping (BusError) -> Void = { _ in }
  ) {
    self.message = message
    self.installed = installed
    self.ended = ended
  }

  /// For sd-bus's `userdata`.
  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// Returns 0 to sd-bus: there is nothing that it should do with a failure of ours.
  static let onMessage: sd_bus_message_handler_t = { message, userdata, _ in
    guard let message, let userdata else { return 0 }
    Unmanaged<BusCallback>.fromOpaque(userdata).takeUnretainedValue().message(message)
    return 0
  }

  static let onInstalled: sd_bus_message_handler_t = { message, userdata, _ in
    guard let message, let userdata else { return 0 }
    Unmanaged<BusCallback>.fromOpaque(userdata).takeUnretainedValue().installed(message)
    return 0
  }
}

/// Who has a well-known name, and who wants to know when that changes.
struct BusNameOwner {
  /// The unique name; empty when nobody has it or it is not known yet.
  var unique = ""
  var listeners: [UInt64: @Sendable (BusConnection) -> Void] = [:]

  func tell(_ connection: BusConnection) {
    for (_, listener) in listeners.sorted(by: { $0.key < $1.key }) { listener(connection) }
  }
}
