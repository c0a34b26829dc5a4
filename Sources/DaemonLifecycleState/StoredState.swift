// SPDX-License-Identifier: Apache-2.0
/// A state as ``StateStore/load()`` returns it.
public struct StoredState: Sendable {
  /// The bytes that were saved.
  public let bytes: [UInt8]
  /// The version with which the state was saved: the store's or an earlier one.
  public let version: UInt32
  /// The number of the save, higher than that of any before it.
  package let generation: UInt64
  package let path: String
  /// One sentence for each file that is damaged. If there are any, this may be the state before the last: log them.
  public let broken: [String]
}
