// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

@testable import DaemonSystemd

/// The D-Bus wire format, little-endian, written from the specification: the other side of what
/// libsystemd reads, and of the strings that it writes here.
enum BusWire {
  struct Writer {
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
      align(BusWire.alignment(element))
      let start = bytes.count
      for inner in values { value(inner) }
      let size = UInt32(bytes.count - start)
      withUnsafeBytes(of: size.littleEndian) {
        bytes.replaceSubrange(length..<length + 4, with: $0)
      }
    }
  }

  struct Reader {
    let bytes: [UInt8]
    var offset = 0

    mutating func align(_ size: Int) { while offset % size != 0 { offset += 1 } }

    mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number {
      let size = MemoryLayout<Number>.size
      align(size)
      var number: Number = 0
      for index in 0..<size {
        number |= Number(truncatingIfNeeded: UInt64(bytes[offset + index]) << (8 * index))
      }
      offset += size
      return number
    }

    mutating func text(_ length: Int) -> String {
      defer { offset += length + 1 }
      return String(decoding: bytes[offset..<offset + length], as: UTF8.self)
    }

    mutating func signature() -> String {
      let length = Int(bytes[offset])
      offset += 1
      return text(length)
    }

    mutating func values(_ signature: String) -> [BusWireValue] {
      var rest = Array(signature)[...]
      var values: [BusWireValue] = []
      while !rest.isEmpty { values.append(value(BusWire.firstType(&rest))) }
      return values
    }

    mutating func value(_ type: String) -> BusWireValue {
      switch type.first {
      case "y":
        offset += 1
        return .byte(bytes[offset - 1])
      case "u": return .uint32(integer())
      case "s": return .string(text(Int(integer(UInt32.self))))
      case "o": return .objectPath(text(Int(integer(UInt32.self))))
      case "g": return .signature(signature())
      case "v": return .variant(value(signature()))
      case "a": return array(String(type.dropFirst()))
      default:
        align(8)
        return .structure(values(String(type.dropFirst().dropLast())))
      }
    }

    private mutating func array(_ element: String) -> BusWireValue {
      let length = Int(integer(UInt32.self))
      align(BusWire.alignment(element))
      let end = offset + length
      var values: [BusWireValue] = []
      while offset < end { values.append(value(element)) }
      return .array(of: element, values)
    }
  }

  static func alignment(_ type: String) -> Int {
    switch type.first {
    case "y", "g", "v": 1
    case "t", "(", "{": 8
    default: 4
    }
  }

  /// Takes one complete type off the front of a signature.
  static func firstType(_ rest: inout ArraySlice<Character>) -> String {
    guard let first = rest.popFirst() else { return "" }
    if first == "a" { return "a" + firstType(&rest) }
    guard first == "(" || first == "{" else { return String(first) }
    var type = String(first)
    while let next = rest.first, next != ")", next != "}" { type += firstType(&rest) }
    if let last = rest.popFirst() { type.append(last) }
    return type
  }
}

/// One message of the wire format.
struct BusWireMessage {
  enum Kind: UInt8 {
    case call = 1
    case reply, error, signal
  }

  var kind: Kind
  var serial: UInt32 = 0
  /// By the specification's codes: 1 path, 2 interface, 3 member, 4 error, 5 reply serial, 6 destination,
  /// 7 sender, 8 signature, 9 descriptors.
  var fields: [UInt8: BusWireValue] = [:]
  var body: [BusWireValue] = []

  func text(_ field: UInt8) -> String {
    switch fields[field] {
    case .string(let text), .objectPath(let text), .signature(let text): text
    default: ""
    }
  }
  var path: String { text(1) }
  var interface: String { text(2) }
  var member: String { text(3) }
  /// The first arguments as strings.
  var strings: [String] { body.compactMap { if case .string(let text) = $0 { text } else { nil } } }

  /// The bytes and the descriptors that go with them.
  func encoded() -> (bytes: [UInt8], descriptors: [Int32]) {
    var content = BusWire.Writer()
    for value in body { content.value(value) }
    var all = fields
    let signature = body.map(\.signature).joined()
    if !signature.isEmpty { all[8] = .signature(signature) }
    if !content.descriptors.isEmpty { all[9] = .uint32(UInt32(content.descriptors.count)) }
    var header = BusWire.Writer(bytes: [UInt8(ascii: "l"), kind.rawValue, 0, 1])
    header.integer(UInt32(content.bytes.count))
    header.integer(serial)
    header.value(
      .array(
        of: "(yv)",
        all.sorted { $0.key < $1.key }.map { .structure([.byte($0.key), .variant($0.value)]) }))
    header.align(8)
    return (header.bytes + content.bytes, content.descriptors)
  }

  /// Takes a complete message off the front of what was received.
  static func take(from buffer: inout [UInt8]) -> BusWireMessage? {
    guard buffer.count >= 16 else { return nil }
    var reader = BusWire.Reader(bytes: buffer, offset: 4)
    let bodyLength = Int(reader.integer(UInt32.self))
    let serial: UInt32 = reader.integer()
    let fieldsLength = Int(reader.integer(UInt32.self))
    let bodyStart = (16 + fieldsLength + 7) / 8 * 8
    guard buffer.count >= bodyStart + bodyLength, let kind = Kind(rawValue: buffer[1]) else {
      return nil
    }
    reader.offset = 12
    var message = BusWireMessage(kind: kind, serial: serial)
    if case .array(_, let fields) = reader.value("a(yv)") {
      for case .structure(let field) in fields {
        if case .byte(let code) = field[0], case .variant(let value) = field[1] {
          message.fields[code] = value
        }
      }
    }
    var body = BusWire.Reader(bytes: Array(buffer[bodyStart..<bodyStart + bodyLength]))
    message.body = body.values(message.text(8))
    buffer.removeFirst(bodyStart + bodyLength)
    return message
  }
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
}
