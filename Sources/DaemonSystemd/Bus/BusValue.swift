import CLinux
import Synchronization

/// A value as it goes over the bus, with its type.
///
/// The names are those of the D-Bus specification's types.
package indirect enum BusValue: Sendable, Hashable {
  /// `y`: 8 bits without a sign.
  case byte(UInt8)
  /// `b`: true or false.
  case bool(Bool)
  /// `n`: 16 bits with a sign.
  case int16(Int16)
  /// `q`: 16 bits without a sign.
  case uint16(UInt16)
  /// `i`: 32 bits with a sign.
  case int32(Int32)
  /// `u`: 32 bits without a sign.
  case uint32(UInt32)
  /// `x`: 64 bits with a sign.
  case int64(Int64)
  /// `t`: 64 bits without a sign; systemd's times in microseconds.
  case uint64(UInt64)
  /// `d`: a floating-point number.
  case double(Double)
  /// `s`: text.
  case string(String)
  /// `o`: the path of an object, such as `/org/freedesktop/login1`.
  case objectPath(String)
  /// `g`: types, as letters.
  case signature(String)
  /// `h`: a file descriptor.
  case descriptor(BusDescriptor)
  /// Elements that all have the signature given, which an empty array needs too.
  case array(of: String, [BusValue])
  /// A key and its value; an array of these is a dictionary.
  case entry(BusValue, BusValue)
  /// `(…)`: values of fixed types, one after another.
  case structure([BusValue])
  /// `v`: a value that carries its type along.
  case variant(BusValue)

  // MARK: Looking inside

  /// The keys and values of a dictionary whose keys are strings, variants unwrapped; `nil` for any other
  /// value. This is the form of properties (`a{sv}`).
  package var dictionary: [String: BusValue]? {
    guard case .array(let element, let entries) = self, element.hasPrefix("{s") else { return nil }
    var result: [String: BusValue] = [:]
    for case .entry(.string(let key), let value) in entries { result[key] = value.unwrapped }
    return result
  }

  /// What is inside a variant; any other value itself.
  package var unwrapped: BusValue {
    if case .variant(let value) = self { value.unwrapped } else { self }
  }

  /// The D-Bus signature of this value.
  package var signature: String {
    switch self {
    case .byte: "y"
    case .bool: "b"
    case .int16: "n"
    case .uint16: "q"
    case .int32: "i"
    case .uint32: "u"
    case .int64: "x"
    case .uint64: "t"
    case .double: "d"
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

/// A file descriptor that came over the bus: duplicated, close-on-exec, closed with the last reference.
package final class BusDescriptor: Sendable, Hashable {
  /// -1 once it was closed.
  let number: Mutex<Int32>

  /// Takes over an open descriptor.
  package init(_ descriptor: consuming OwnedDescriptor) { number = Mutex(descriptor.release()) }

  deinit { close() }

  /// Closes it now; does nothing the second time. From any thread.
  package func close() {
    number.withLock { number in
      if number >= 0 { _ = CLinux.close(number) }
      number = -1
    }
  }

  /// The same object; two descriptors of one open file are not the same.
  package static func == (a: BusDescriptor, b: BusDescriptor) -> Bool { a === b }
  /// By identity, as `==`.
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
