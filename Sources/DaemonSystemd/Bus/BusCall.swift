// SPDX-License-Identifier: Apache-2.0
/// A service whose methods are called and whose signals are received.
package enum BusService: String, Sendable {
  case bus = "org.freedesktop.DBus"
  case systemd = "org.freedesktop.systemd1"
  case logind = "org.freedesktop.login1"

  /// The object that represents the service itself.
  package var path: String { "/" + rawValue.replacing(".", with: "/") }

  /// An interface of the service, such as `Manager`.
  package func interface(_ name: String) -> String { "\(rawValue).\(name)" }
}

private let properties = BusService.bus.interface("Properties")

/// A call of a method, with strings as its arguments.
package struct BusCall: Hashable, Sendable {
  let service: BusService
  package let path: String
  let interface: String
  package let member: String
  let arguments: [String]

  package init(
    _ member: String, of path: String, _ interface: String, _ service: BusService,
    _ arguments: [String] = []
  ) {
    (self.member, self.path, self.interface) = (member, path, interface)
    (self.service, self.arguments) = (service, arguments)
  }

  /// Reads a property of an object, in an interface of the service such as `Unit`.
  package static func get(
    _ property: String, of path: String, _ interface: String, _ service: BusService
  ) -> BusCall {
    BusCall("Get", of: path, properties, service, [service.interface(interface), property])
  }

  /// Reads all properties of an object.
  package static func getAll(of path: String, _ interface: String, _ service: BusService) -> BusCall
  {
    BusCall("GetAll", of: path, properties, service, [service.interface(interface)])
  }

  /// The property or method in messages.
  var subject: String { interface == properties ? arguments.last ?? member : member }
}

/// A rule for signals; see "Match Rules" in the D-Bus specification.
package struct BusMatch: Sendable {
  let member: String
  let interface: String
  /// Any object's if it is `nil`.
  let path: String?
  /// The first argument.
  let argument: String?

  package init(
    _ member: String, of path: String?, _ interface: String, argument: String? = nil
  ) {
    (self.member, self.path, self.interface, self.argument) = (member, path, interface, argument)
  }

  /// `PropertiesChanged` of an interface, of an object or of all.
  package static func changes(of path: String?, _ interface: String) -> BusMatch {
    BusMatch("PropertiesChanged", of: path, properties, argument: interface)
  }

  func rule(_ service: BusService) -> String {
    let keys = [("sender", service.rawValue), ("interface", interface), ("member", member)]
    let rest = [("path", path), ("arg0", argument)].compactMap { key, value in
      value.map { (key, $0) }
    }
    return "type='signal'" + (keys + rest).map { ",\($0)='\($1)'" }.joined()
  }
}
