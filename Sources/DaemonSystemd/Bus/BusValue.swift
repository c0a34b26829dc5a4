// SPDX-License-Identifier: Apache-2.0
/// A value of a message, by its D-Bus type.
package indirect enum BusValue: Sendable {
  case bool(Bool)
  case uint32(UInt32)
  case uint64(UInt64)
  case string(String)
  case path(String)
  case descriptor(BusDescriptor)
  /// A structure of two members, or an entry of a dictionary.
  case pair(BusValue, BusValue)
  /// An array, or any other structure.
  case list([BusValue])
  case variant(BusValue)
  /// A value of a type that no request reads.
  case other
}

/// A file descriptor that was received over the bus; closed with the last reference.
package final class BusDescriptor: Sendable {
  package let descriptor: OwnedDescriptor

  package init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}

extension [BusValue] {
  /// The value of a message that has exactly one.
  package var only: BusValue? { count == 1 ? self[0] : nil }
}

extension BusValue {
  /// The properties in a dictionary of them; `nil` for any other value.
  package var properties: [String: BusValue]? {
    guard case .list(let entries) = self else { return nil }
    var properties: [String: BusValue] = [:]
    for entry in entries {
      guard case .pair(.string(let name), .variant(let value)) = entry else { return nil }
      properties[name] = value
    }
    return properties
  }
}
