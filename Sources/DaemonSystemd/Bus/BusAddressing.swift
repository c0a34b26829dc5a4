import CLinux

package enum BusAddress: Sendable, Hashable, CustomStringConvertible {
  /// The machine's bus, where PID 1 and logind are; `DBUS_SYSTEM_BUS_ADDRESS` overrides its address.
  case system
  /// The user's own bus, found by `DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`.
  case user
  /// Any other, for example `unix:path=/run/test/bus`.
  case address(String)

  /// As in "the system bus can't be reached".
  package var description: String {
    switch self {
    case .system: "the system bus"
    case .user: "the user bus"
    case .address(let text): "the bus at \(text)"
    }
  }
}

/// An object of a service, seen by one of its interfaces.
package struct BusObject: Sendable, Hashable, CustomStringConvertible {
  /// The service's name on the bus.
  let destination: String
  let path: String
  let interface: String

  /// As in "org.example.Echo at /echo".
  package var description: String { "\(interface) at \(path)" }

  package func method(_ member: String) -> BusMethod { BusMethod(object: self, member: member) }

  /// The same object, seen as what has properties.
  var properties: BusObject {
    BusObject(
      destination: destination, path: path, interface: "org.freedesktop.DBus.Properties")
  }

  package static let bus = BusObject(
    destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus")
}

/// A method of an object.
package struct BusMethod: Sendable, Hashable, CustomStringConvertible {
  let object: BusObject
  let member: String

  /// As in "org.example.Echo.Say".
  package var description: String { "\(object.interface).\(member)" }

  static let addMatch = BusObject.bus.method("AddMatch")

  /// A new message; the caller owns the reference.
  func newMessage(on bus: OpaquePointer, _ library: BusLibrary) throws(BusError) -> OpaquePointer {
    var message: OpaquePointer?
    let (destination, path, interface) = (object.destination, object.path, object.interface)
    for text in [destination, path, interface, member] where text.utf8.contains(0) {
      throw .invalidArgument("\"\(text)\" can't be called: it has a zero byte.")
    }
    let result = library.call(\.bus_message_new_method_call) {
      $0(bus, &message, destination, path, interface, member)
    }
    guard result >= 0, let message else {
      if result == -ENOTCONN { throw .disconnected(errno: ENOTCONN) }
      throw .invalidArgument(
        "\(self) at \(path) of \(destination) is not a name that can be called.")
    }
    return message
  }
}

/// Which signals are wanted.
struct BusMatchRule: Sendable, Hashable {
  /// A service's name, of which only the owner is heard.
  let sender: String
  /// The object that sends it; `nil`: any of the service's.
  let path: String?
  let interface: String
  let member: String
  /// The first argument, where it is a string: for `PropertiesChanged` the interface that changed.
  var firstArgument: String?

  static func signal(_ member: String, of object: BusObject) -> BusMatchRule {
    BusMatchRule(
      sender: object.destination, path: object.path, interface: object.interface, member: member)
  }

  static func propertiesChanged(
    of interface: String, from sender: String, at path: String? = nil
  ) -> BusMatchRule {
    BusMatchRule(
      sender: sender, path: path, interface: BusObject.bus.properties.interface,
      member: "PropertiesChanged", firstArgument: interface)
  }

  static func nameOwnerChanged(of name: String) -> BusMatchRule {
    var rule = signal("NameOwnerChanged", of: .bus)
    rule.firstArgument = name
    return rule
  }

  /// The sender, if its owner may change; the bus itself has one name for ever.
  var wellKnownSender: String? { sender == BusObject.bus.destination ? nil : sender }

  /// The rule in the bus's own language.
  func text() throws(BusError) -> String {
    var text = "type='signal'"
    let parts = [
      ("interface", interface), ("member", member), ("sender", sender), ("path", path),
      ("arg0", firstArgument),
    ]
    for case (let name, let value?) in parts {
      if value.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "'") }) {
        throw .invalidArgument("\"\(value)\" can't be matched: it has a quote or a zero byte.")
      }
      text += ",\(name)='\(value)'"
    }
    return text
  }
}

/// A match that can be cancelled, on the connection that made it.
struct BusMatch: Sendable, Hashable {
  let id: UInt64
}

/// A signal that came.
struct BusSignal: Sendable, Hashable {
  /// The unique name of the connection that sent it.
  let sender: String
  let member: String
  let arguments: [BusValue]
}

extension BusMessageReader {
  /// The signal; an error when its body can't be read.
  func signal() -> Result<BusSignal, BusError> {
    func text(_ pointer: UnsafePointer<CChar>?) -> String {
      pointer.map { String(cString: $0) } ?? ""
    }
    let functions = library.functions
    return Result { () throws(BusError) in
      BusSignal(
        sender: text(functions.bus_message_get_sender?(message)),
        member: text(functions.bus_message_get_member?(message)), arguments: try readAll())
    }
  }

  /// The error that the message is, `nil` when it is none.
  func error(in method: BusMethod) -> BusError? {
    guard library.call(\.bus_message_is_method_error, { $0(message, nil) }) > 0 else { return nil }
    let error = library.functions.bus_message_get_error?(message)?.pointee
    let code = library.call(\.bus_message_get_errno) { $0(message) }
    return .call(
      method: method.description, name: error?.name.map { String(cString: $0) } ?? "",
      message: error?.message.map { String(cString: $0) } ?? "", errno: code)
  }
}
