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

extension BusWireValue {
  /// The D-Bus signature of this value.
  var signature: String {
    switch self {
    case .byte: "y"
    case .bool: "b"
    case .int32: "i"
    case .uint32: "u"
    case .uint64: "t"
    case .string: "s"
    case .objectPath: "o"
    case .signature: "g"
    case .descriptor: "h"
    case .array(let element, _): "a" + element
    case .entry(let key, let value): "{" + key.signature + value.signature + "}"
    case .structure(let members): "(" + members.map(\.signature).joined() + ")"
    case .variant: "v"
    }
  }

  /// `a{sv}`.
  static func properties(_ values: [String: BusWireValue]) -> BusWireValue {
    .array(
      of: "{sv}",
      values.sorted { $0.key < $1.key }.map { .entry(.string($0.key), .variant($0.value)) })
  }
}

/// Writes the D-Bus wire format, little-endian, from the specification: the other side of what libsystemd reads.
struct BusWireWriter {
  var bytes: [UInt8] = []
  var descriptors: [Int32] = []

  mutating func align(_ size: Int) { while bytes.count % size != 0 { bytes.append(0) } }

  mutating func integer<Number: FixedWidthInteger>(_ number: Number) {
    align(MemoryLayout<Number>.size)
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func string(_ text: String) {
    integer(UInt32(text.utf8.count))
    bytes += Array(text.utf8) + [0]
  }

  mutating func value(_ value: BusWireValue) {
    switch value {
    case .byte(let number): bytes.append(number)
    case .bool(let flag): integer(UInt32(flag ? 1 : 0))
    case .int32(let number): integer(number)
    case .uint32(let number): integer(number)
    case .uint64(let number): integer(number)
    case .string(let text), .objectPath(let text): string(text)
    case .signature(let text): signature(text)
    case .descriptor(let descriptor):
      integer(UInt32(descriptors.count))
      descriptors.append(descriptor.descriptor.rawValue)
    case .array(let element, let values): array(element, values)
    case .entry(let key, let inner):
      align(8)
      self.value(key)
      self.value(inner)
    case .structure(let members):
      align(8)
      for member in members { self.value(member) }
    case .variant(let inner):
      signature(inner.signature)
      self.value(inner)
    }
  }

  private mutating func signature(_ text: String) {
    bytes.append(UInt8(text.utf8.count))
    bytes += Array(text.utf8) + [0]
  }

  private mutating func array(_ element: String, _ values: [BusWireValue]) {
    integer(UInt32(0))
    let length = bytes.count - 4
    align(Self.alignment(element))
    let start = bytes.count
    for inner in values { value(inner) }
    let size = UInt32(bytes.count - start)
    withUnsafeBytes(of: size.littleEndian) {
      bytes.replaceSubrange(length..<length + 4, with: $0)
    }
  }

  private static func alignment(_ type: String) -> Int {
    switch type.first {
    case "y", "g", "v": 1
    case "t", "(", "{": 8
    default: 4
    }
  }
}

/// A call from a client.
struct BusWireCall {
  let serial: UInt32
  /// By the specification's codes, those that are texts.
  private let fields: [UInt8: String]
  /// Its arguments: ours are strings.
  let strings: [String]

  var path: String { fields[1] ?? "" }
  var interface: String { fields[2] ?? "" }
  var member: String { fields[3] ?? "" }
  var destination: String { fields[6] ?? "" }

  /// Takes a complete one off the front of what was received.
  static func take(from buffer: inout [UInt8]) -> BusWireCall? {
    guard buffer.count >= 16 else { return nil }
    var reader = Reader(bytes: buffer, offset: 4)
    let bodyLength = Int(reader.integer())
    let serial = reader.integer()
    let fieldsEnd = 16 + Int(reader.integer())
    let bodyStart = (fieldsEnd + 7) / 8 * 8
    let end = bodyStart + bodyLength
    guard buffer.count >= end else { return nil }
    defer { buffer.removeFirst(end) }
    var fields: [UInt8: String] = [:]
    while reader.offset < fieldsEnd {
      reader.align(8)
      // A code, and a variant: the length of its signature, its type, a zero, and what is of that type.
      let (code, type) = (buffer[reader.offset], buffer[reader.offset + 2])
      reader.offset += 4
      switch type {
      case UInt8(ascii: "u"): _ = reader.integer()
      case UInt8(ascii: "g"): reader.offset += Int(buffer[reader.offset]) + 2
      default: fields[code] = reader.string()
      }
    }
    reader.offset = bodyStart
    var strings: [String] = []
    while reader.offset < end { strings.append(reader.string()) }
    return BusWireCall(serial: serial, fields: fields, strings: strings)
  }

  private struct Reader {
    let bytes: [UInt8]
    var offset: Int

    mutating func align(_ size: Int) { while offset % size != 0 { offset += 1 } }

    mutating func integer() -> UInt32 {
      align(4)
      defer { offset += 4 }
      return bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func string() -> String {
      let length = Int(integer())
      defer { offset += length + 1 }
      return String(decoding: bytes[offset..<offset + length], as: UTF8.self)
    }
  }
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
