// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd
public import FoundationEssentials

// Values that outlive a restart: what a daemon would rather not write to disk, since it is of no use after a stop.
extension Preservation {
  /// Has the service manager keep a value for the next run, in place of what it has under this name.
  ///
  /// ```swift
  /// try preservation.preserve(value: connections, named: "state")                     // at the end
  /// let left = try preservation.preserved(value: [Connection].self, named: "state")  // at the start
  /// ```
  ///
  /// As JSON, unless the encoder says otherwise, in memory: what has to outlive the machine goes to a `StateStore`.
  ///
  /// - Throws: What the encoder throws, and `SystemdError`.
  @discardableResult
  public func preserve(
    value: some Encodable, named name: String, encoder: JSONEncoder = JSONEncoder()
  ) throws -> DescriptorStore.Result {
    try preserve([UInt8](encoder.encode(value)), named: name)
  }

  /// The value that an earlier run has preserved under this name; `nil` when there is none.
  ///
  /// Have it forgotten once it is in use. One that does not decode was written by another version: it is handed out no
  /// second time, and the service manager keeps it until it is told to forget it.
  ///
  /// - Throws: What the decoder throws, and `SystemdError`.
  public func preserved<Value: Decodable>(
    value type: Value.Type, named name: String, limit: Int = OwnedDescriptor.memoryLimit,
    decoder: JSONDecoder = JSONDecoder()
  ) throws -> Value? {
    guard let bytes = try preservedBytes(named: name, limit: limit) else { return nil }
    return try decoder.decode(type, from: Data(bytes))
  }
}
