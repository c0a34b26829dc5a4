import CLinux

/// Which bus.
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
  package let destination: String
  /// The object's path.
  package let path: String
  /// The interface by which it is seen.
  package let interface: String

  /// Names an object; whether it exists shows when it is asked.
  package init(destination: String, path: String, interface: String) {
    self.destination = destination
    self.path = path
    self.interface = interface
  }

  /// As in "org.example.Echo at /echo".
  package var description: String { "\(interface) at \(path)" }

  /// A method of this interface, or of another interface of the same object.
  package func method(_ member: String, interface: String? = nil) -> BusMethod {
    BusMethod(
      destination: destination, path: path, interface: interface ?? self.interface, member: member)
  }

  static let properties = "org.freedesktop.DBus.Properties"
  static let bus = BusObject(
    destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus")
}

/// A method of an object.
package struct BusMethod: Sendable, Hashable, CustomStringConvertible {
  /// The service's name on the bus.
  package let destination: String
  /// The object's path.
  package let path: String
  /// The interface that has the method.
  package let interface: String
  /// The method's name.
  package let member: String

  /// Names a method; whether it exists shows when it is called.
  package init(destination: String, path: String, interface: String, member: String) {
    self.destination = destination
    self.path = path
    self.interface = interface
    self.member = member
  }

  /// As in "org.example.Echo.Say".
  package var description: String { "\(interface).\(member)" }

  static let addMatch = BusObject.bus.method("AddMatch")

  /// A new message; the caller owns the reference.
  func newMessage(on bus: OpaquePointer, _ library: BusLibrary) throws(BusError) -> OpaquePointer {
    var message: OpaquePointer?
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

/// Which signals are wanted; what is `nil` matches anything.
package struct BusMatchRule: Sendable, Hashable {
  /// A service's name, of which only the owner is heard then, or a unique name.
  package var sender: String?
  /// The path of the object that sends it.
  package var path: String?
  /// The interface that has the signal.
  package var interface: String
  /// The signal's name.
  package var member: String
  /// The first argument, where it is a string: for `PropertiesChanged` the interface that changed.
  package var firstArgument: String?

  /// Names the signals wanted.
  package init(
    sender: String?, path: String?, interface: String, member: String, firstArgument: String? = nil
  ) {
    self.sender = sender
    self.path = path
    self.interface = interface
    self.member = member
    self.firstArgument = firstArgument
  }

  /// A signal of an object.
  package static func signal(_ member: String, of object: BusObject) -> BusMatchRule {
    BusMatchRule(
      sender: object.destination, path: object.path, interface: object.interface, member: member)
  }

  /// `PropertiesChanged` for the object's interface.
  package static func propertiesChanged(of object: BusObject) -> BusMatchRule {
    BusMatchRule(
      sender: object.destination, path: object.path, interface: BusObject.properties,
      member: "PropertiesChanged", firstArgument: object.interface)
  }

  static func nameOwnerChanged(of name: String) -> BusMatchRule {
    BusMatchRule(
      sender: BusObject.bus.destination, path: BusObject.bus.path,
      interface: BusObject.bus.interface, member: "NameOwnerChanged", firstArgument: name)
  }

  /// The sender, if its owner may change; the bus itself has one name for ever.
  var wellKnownSender: String? {
    guard let sender, !sender.hasPrefix(":"), sender != BusObject.bus.destination else {
      return nil
    }
    return sender
  }

  /// The rule in the bus's own language.
  func text() throws(BusError) -> String {
    var text = "type='signal',interface='\(interface)',member='\(member)'"
    if let sender { text += ",sender='\(sender)'" }
    if let path { text += ",path='\(path)'" }
    if let firstArgument { text += ",arg0='\(firstArgument)'" }
    for value in [sender, path, interface, member, firstArgument] {
      if let value, value.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "'") }) {
        throw .invalidArgument("\"\(value)\" can't be matched: it has a quote or a zero byte.")
      }
    }
    return text
  }
}

/// A match that can be cancelled, on the connection that made it.
package struct BusMatch: Sendable, Hashable {
  let id: UInt64
}

/// A signal that came.
package struct BusSignal: Sendable, Hashable {
  /// The unique name of the connection that sent it.
  package let sender: String
  /// The path of the object that sent it.
  package let path: String
  /// The interface that has the signal.
  package let interface: String
  /// The signal's name.
  package let member: String
  /// What it brought.
  package let arguments: [BusValue]
}

extension BusMessageReader {
  /// The signal; an error when its body can't be read.
  func signal() -> Result<BusSignal, BusError> {
    func text(_ pointer: UnsafePointer<CChar>?) -> String {
      pointer.map { String(cString: $0) } ?? ""
    }
    let functions = library.functions
    do throws(BusError) {
      return .success(
        BusSignal(
          sender: text(functions.bus_message_get_sender?(message)),
          path: text(functions.bus_message_get_path?(message)),
          interface: text(functions.bus_message_get_interface?(message)),
          member: text(functions.bus_message_get_member?(message)), arguments: try readAll()))
    } catch {
      return .failure(error)
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
