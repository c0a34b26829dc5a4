// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A connection of sd-bus(3), and a reader of its messages.
///
/// Nothing here blocks. One thread at a time may use it; libsystemd ends the process where two do.
final class SDBus {
  private let sd: clinux_sdbus
  private let bus: OpaquePointer

  /// Loads libsystemd (dlopen(3)).
  static func load(_ library: String) throws(BusError) -> clinux_sdbus {
    var functions = clinux_sdbus()
    guard let problem = clinux_sdbus_load(library, &functions) else { return functions }
    throw BusError(
      .unavailable, "There is no bus: \(library) can't be used (\(String(cString: problem))).")
  }

  init(_ address: BusAddress, _ functions: clinux_sdbus) throws(BusError) {
    sd = functions
    var made: OpaquePointer?
    var result: Int32
    switch address {
    case .system: result = sd.bus_open_system(&made)
    case .user: result = sd.bus_open_user(&made)
    case .address(let text):
      result = sd.bus_new(&made)
      if result >= 0 { result = sd.bus_set_address(made, text) }
      if result >= 0 { result = sd.bus_set_bus_client(made, 1) }
      if result >= 0 { result = sd.bus_start(made) }
    }
    guard result >= 0, let made else {
      if let made { _ = sd.bus_unref(made) }
      throw BusError(
        "There is no bus: \(address.name) can't be reached", errno: -result, .unavailable)
    }
    bus = made
  }

  /// Closes it first, so that nothing is sent any more. No handler is called after this.
  deinit {
    sd.bus_close(bus)
    _ = sd.bus_unref(bus)
  }

  // MARK: For the event loop

  var isOpen: Bool { sd.bus_is_open(bus) > 0 }
  var isReady: Bool { sd.bus_is_ready(bus) > 0 }
  /// The socket, which may change after each step; negative when the connection has ended.
  var socket: Int32 { sd.bus_get_fd(bus) }
  /// The events to wait for; negative when the connection has ended.
  var events: Int32 { sd.bus_get_events(bus) }

  /// The time at which `process()` is to be called at the latest.
  var deadline: MonotonicTime {
    var time = UInt64.max
    return sd.bus_get_timeout(bus, &time) < 0 ? .distantFuture : MonotonicTime(microseconds: time)
  }

  /// Does one step, which may call one handler. Returns a positive number if there may be more to do, 0 if there is
  /// not, or a negative errno value when the connection is lost.
  func process() -> Int32 { sd.bus_process(bus, nil) }

  // MARK: Calls and signals

  /// Sends a call. The handler receives the reply or the error, and an unretained pointer to `context`.
  func send(
    _ call: BusCall, context: AnyObject, _ handler: clinux_sdbus_handler
  ) throws(BusError) {
    var message: OpaquePointer?
    var result = sd.bus_message_new_method_call(
      bus, &message, call.service.rawValue, call.path, call.interface, call.member)
    // libsystemd has a reference of its own while the message is queued.
    defer { if let message { _ = sd.bus_message_unref(message) } }
    for text in call.arguments where result >= 0 {
      result = sd.bus_message_append_basic(message, Self.type("s"), text)
    }
    if result >= 0 {
      // Without a slot the call lives as long as the connection, with libsystemd's limit of 25 s.
      result = sd.bus_call_async(
        bus, nil, message, handler, Unmanaged.passUnretained(context).toOpaque(), 0)
    }
    if result < 0 { throw BusError("The bus can't be used for \(call.subject)", errno: -result) }
  }

  /// Requests signals, for as long as the connection lives. `installed` receives the bus's reply.
  func match(
    _ match: BusMatch, context: AnyObject, _ handler: clinux_sdbus_handler,
    installed: clinux_sdbus_handler
  ) throws(BusError) {
    let result = sd.bus_add_match_async(
      bus, nil, match.rule, handler, installed, Unmanaged.passUnretained(context).toOpaque())
    if result < 0 { throw BusError("The bus can't be used for \(match.member)", errno: -result) }
  }

  // MARK: Messages

  func sender(of message: OpaquePointer) -> String { text(sd.bus_message_get_sender(message)) }
  func member(of message: OpaquePointer) -> String { text(sd.bus_message_get_member(message)) }

  /// The values of a reply, or its error.
  func reply(_ message: OpaquePointer, about subject: String) -> Result<[BusValue], BusError> {
    guard sd.bus_message_is_method_error(message, nil) > 0 else {
      return Result { () throws(BusError) in try values(of: message, about: subject) }
    }
    let error = sd.bus_message_get_error(message)
    return .failure(
      BusError(
        about: subject, name: text(error?.pointee.name), text: text(error?.pointee.message),
        errno: sd.bus_message_get_errno(message)))
  }

  /// All values of a message.
  func values(of message: OpaquePointer, about subject: String) throws(BusError) -> [BusValue] {
    // More values than systemd sends of its largest unit, and few enough to be read at once.
    var room = 100_000
    do throws(Unreadable) { return try values(of: message, &room) } catch {
      throw .malformed(subject)
    }
  }

  private struct Unreadable: Error {}

  /// The values up to the end of the message, or of the container that was entered.
  private func values(
    of message: OpaquePointer, _ room: inout Int
  ) throws(Unreadable) -> [BusValue] {
    var values: [BusValue] = []
    while true {
      var type: CChar = 0
      var contents: UnsafePointer<CChar>?
      let result = sd.bus_message_peek_type(message, &type, &contents)
      if result == 0 { return values }
      room -= 1
      guard result > 0, room > 0 else { throw Unreadable() }
      values.append(try value(of: message, type, contents, &room))
    }
  }

  private func value(
    of message: OpaquePointer, _ type: CChar, _ contents: UnsafePointer<CChar>?, _ room: inout Int
  ) throws(Unreadable) -> BusValue {
    switch type {
    // Four bytes on the bus.
    case Self.type("b"): return .bool(try read(message, type, Int32(0)) != 0)
    case Self.type("u"): return .uint32(try read(message, type, UInt32(0)))
    case Self.type("t"): return .uint64(try read(message, type, UInt64(0)))
    case Self.type("s"): return .string(text(try read(message, type, nil)))
    case Self.type("o"): return .path(text(try read(message, type, nil)))
    case Self.type("h"):
      // The message closes its own descriptor.
      let number = clinux_duplicate(try read(message, type, Int32(-1)), 3)
      guard number >= 0 else { throw Unreadable() }
      return .descriptor(BusDescriptor(OwnedDescriptor(owning: number)))
    case Self.type("a"), Self.type("r"), Self.type("e"), Self.type("v"):
      guard sd.bus_message_enter_container(message, type, contents) > 0 else { throw Unreadable() }
      let values = try values(of: message, &room)
      guard sd.bus_message_exit_container(message) >= 0 else { throw Unreadable() }
      if type == Self.type("a") { return .list(values) }
      if type == Self.type("v"), let value = values.only { return .variant(value) }
      return values.count == 2 ? .pair(values[0], values[1]) : .list(values)
    default:
      guard sd.bus_message_skip(message, [type, 0]) >= 0 else { throw Unreadable() }
      return .other
    }
  }

  /// Reads one value into a variable that has the size of its type.
  private func read<Value: BitwiseCopyable>(
    _ message: OpaquePointer, _ type: CChar, _ initial: Value
  ) throws(Unreadable) -> Value {
    var value = initial
    guard sd.bus_message_read_basic(message, type, &value) > 0 else { throw Unreadable() }
    return value
  }

  private func text(_ pointer: UnsafePointer<CChar>?) -> String {
    pointer.map { String(cString: $0) } ?? ""
  }

  private static func type(_ letter: Unicode.Scalar) -> CChar { CChar(letter.value) }
}

package enum BusAddress: Sendable {
  /// The machine's bus, where PID 1 and logind are; `DBUS_SYSTEM_BUS_ADDRESS` overrides its address.
  case system
  /// The user's own bus, found by `DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`.
  case user
  /// Another bus, for example `unix:path=/run/test/bus`.
  case address(String)

  /// The bus in messages.
  var name: String {
    switch self {
    case .system: "the system bus"
    case .user: "the user bus"
    case .address(let text): text
    }
  }
}
