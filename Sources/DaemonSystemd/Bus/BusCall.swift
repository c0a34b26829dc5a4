// SPDX-License-Identifier: Apache-2.0
/// A service whose methods are called and whose signals are received.
package enum BusService: String, Sendable {
  case bus = "org.freedesktop.DBus"
  case systemd = "org.freedesktop.systemd1"
  case logind = "org.freedesktop.login1"

  /// The object that represents the service itself.
  package var path: String { "/" + String(rawValue.map { $0 == "." ? "/" : $0 }) }

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

  /// Requests a lock of logind's: against `what`, of the mode "delay" or "block". Source: org.freedesktop.login1(5).
  package static func inhibit(_ what: String, because reason: String, mode: String) -> BusCall {
    BusCall(
      "Inhibit", of: BusService.logind.path, BusService.logind.interface("Manager"), .logind,
      [what, Journal.programName, VisibleText.excerpt(reason), mode])
  }

  /// The name of the property or method, for messages.
  var subject: String { interface == properties ? arguments.last ?? member : member }
}

/// A rule for signals of an object; see "Match Rules" in the D-Bus specification.
package struct BusMatch: Sendable {
  let member: String
  let rule: String

  /// - Parameter argument: The first argument that a signal must have; any if it is `nil`.
  package init(
    _ member: String, of path: String, _ interface: String, _ service: BusService,
    argument: String? = nil
  ) {
    self.member = member
    rule =
      "type='signal',sender='\(service.rawValue)',path='\(path)',interface='\(interface)',member='\(member)'"
      + (argument.map { ",arg0='\($0)'" } ?? "")
  }

  /// The changes of an object's properties, in an interface of the service such as `Unit`.
  package static func changes(
    of path: String, _ interface: String, _ service: BusService
  ) -> BusMatch {
    BusMatch(
      "PropertiesChanged", of: path, properties, service, argument: service.interface(interface))
  }
}
