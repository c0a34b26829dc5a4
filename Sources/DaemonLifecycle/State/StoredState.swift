/// What `load()` has found.
public struct StoredState: Sendable, Hashable {
  /// What was saved; migrated, if `version` is older than the store's.
  public let bytes: [UInt8]
  /// The version with which it was saved.
  public let version: UInt32
  /// Which save this was: more than any before it.
  public let generation: UInt64
  /// The file that it comes from.
  public let path: String
  /// Files that should have been whole: if there are any, this may be the state before the last. Tell somebody.
  public let broken: [BrokenStateFile]
}

/// A file of a state that can't be used, and why.
public struct BrokenStateFile: Sendable, Hashable, CustomStringConvertible {
  /// What is wrong with it.
  public enum Reason: Sendable, Hashable {
    /// It has no bytes, as after a power cut on a file that nobody has synced.
    case empty
    /// It does not begin as a state does, or its header is not one.
    case notAState
    /// It is shorter or longer than its header says.
    case wrongLength(found: Int, expected: Int)
    /// Its bytes are not those that were written.
    case wrongChecksum
    /// The disk does not give it back (EIO).
    case unreadable
  }

  /// Where it is.
  public let path: String
  /// What is wrong with it.
  public let reason: Reason

  public var description: String {
    switch reason {
    case .empty: "\(path) is empty"
    case .notAState: "\(path) is not a state"
    case .wrongLength(let found, let expected):
      "\(path) has \(found) bytes instead of \(expected)"
    case .wrongChecksum: "\(path) does not have the checksum of what was written"
    case .unreadable: "\(path) can't be read from the disk"
    }
  }
}
