// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd
public import FoundationEssentials

// Values that survive a restart but not a stop, and so are not written to disk.
extension Preservation {
  /// Stores a value with the service manager for the next run, in place of an earlier one of this name.
  ///
  /// ```swift
  /// try preservation.preserve(value: connections, named: "state")                     // at the end
  /// let left = try preservation.preserved(value: [Connection].self, named: "state")  // at the start
  /// ```
  ///
  /// The value is kept in memory, as JSON. A value that must survive the machine belongs in a `StateStore`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - name: 1 to 255 ASCII characters without control characters and ':'.
  ///   - encoder: The encoder of the value. Default: a new `JSONEncoder`.
  /// - Throws: The errors of the encoder, and `SystemdError`.
  public func preserve(
    value: some Encodable, named name: String, encoder: JSONEncoder = JSONEncoder()
  ) throws {
    try preserve([UInt8](encoder.encode(value)), named: name)
  }

  /// Returns the value that an earlier run preserved under this name; `nil` when there is none.
  ///
  /// Call `forget(named:)` once the value is in use. A value that can't be decoded, as after an update, is not returned
  /// a second time, and the service manager keeps it until it is forgotten.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - name: The name, as passed to `preserve(value:named:encoder:)`.
  ///   - limit: The largest number of bytes to read. Default 64 MiB.
  ///   - decoder: The decoder of the value. Default: a new `JSONDecoder`.
  /// - Throws: The errors of the decoder, and `SystemdError`.
  public func preserved<Value: Decodable>(
    value type: Value.Type, named name: String, limit: Int = 64 << 20,
    decoder: JSONDecoder = JSONDecoder()
  ) throws -> Value? {
    guard let bytes = try preservedBytes(named: name, limit: limit) else { return nil }
    return try decoder.decode(type, from: Data(bytes))
  }
}
