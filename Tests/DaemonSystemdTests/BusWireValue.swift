// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

/// A value as it goes over the bus, with its type.
///
/// The names are those of the D-Bus specification's types.
indirect enum BusWireValue: Sendable {
  case byte(UInt8)
  case bool(Bool)
  case int32(Int32)
  case uint32(UInt32)
  case uint64(UInt64)
  case string(String)
  case objectPath(String)
  case signature(String)
  case descriptor(BusDescriptor)
  /// Elements that all have the signature given, which an empty array needs too.
  case array(of: String, [BusWireValue])
  /// A key and its value; an array of these is a dictionary.
  case entry(BusWireValue, BusWireValue)
  case structure([BusWireValue])
  case variant(BusWireValue)
}

/// An object of a service, seen by one of its interfaces.
struct BusObject: Sendable {
  let destination: String
  let path: String
  let interface: String

  static let bus = BusObject(
    destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus")
  static let systemd = BusObject(
    destination: "org.freedesktop.systemd1", path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager")
  static let logind = BusObject(
    destination: "org.freedesktop.login1", path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager")

  /// The same object, seen as what has properties.
  var properties: BusObject {
    BusObject(
      destination: destination, path: path, interface: "org.freedesktop.DBus.Properties")
  }
}
