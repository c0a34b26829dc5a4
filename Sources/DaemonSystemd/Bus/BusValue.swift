import CLinux
import Synchronization

/// A value as it goes over the bus, with its type.
///
/// The names are those of the D-Bus specification's types.
package indirect enum BusValue: Sendable, Hashable {
  case byte(UInt8)
  case bool(Bool)
  case int16(Int16)
  case uint16(UInt16)
  case int32(Int32)
  case uint32(UInt32)
  case int64(Int64)
  case uint64(UInt64)
  case double(Double)
  case string(String)
  case objectPath(String)
  case signature(String)
  case descriptor(BusDescriptor)
  /// Elements that all have the signature given, which an empty array needs too.
  case array(of: String, [BusValue])
  /// A key and its value; an array of these is a dictionary.
  case entry(BusValue, BusValue)
  case structure([BusValue])
  case variant(BusValue)

  // MARK: Looking inside

  /// The keys and values of a dictionary whose keys are strings, variants unwrapped; `nil` for any other
  /// value. This is the form of properties (`a{sv}`).
  var dictionary: [String: BusValue]? {
    guard case .array(let element, let entries) = self, element.hasPrefix("{s") else { return nil }
    var result: [String: BusValue] = [:]
    for case .entry(.string(let key), let value) in entries { result[key] = value.unwrapped }
    return result
  }

  /// What is inside a variant; any other value itself.
  var unwrapped: BusValue {
    if case .variant(let value) = self { value.unwrapped } else { self }
  }
}

/// A file descriptor that came over the bus: duplicated, close-on-exec, closed with the last reference.
package final class BusDescriptor: Sendable, Hashable {
  /// -1 once it was closed.
  let number: Mutex<Int32>

  package init(_ descriptor: consuming OwnedDescriptor) { number = Mutex(descriptor.release()) }

  deinit { close() }

  /// Closes it now; does nothing the second time. From any thread.
  package func close() {
    number.withLock { number in
      if number >= 0 { _ = CLinux.close(number) }
      number = -1
    }
  }

  package static func == (a: BusDescriptor, b: BusDescriptor) -> Bool { a === b }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
