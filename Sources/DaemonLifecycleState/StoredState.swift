// SPDX-License-Identifier: Apache-2.0
/// A state that ``StateStore/load()`` has found.
public struct StoredState: Sendable {
  /// The bytes that were saved; migrated, if `version` is older than the store's.
  public let bytes: [UInt8]
  /// The version with which it was saved.
  public let version: UInt32
  /// The number of the save: more than any before it.
  package let generation: UInt64
  package let path: String
  /// A sentence for each file that should have been whole and is not. If there are any, this may be the state before
  /// the last: log them.
  public let broken: [String]
}
