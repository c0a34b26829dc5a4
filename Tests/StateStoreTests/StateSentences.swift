// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycleState

/// What `unusable` says, for comparison.
extension StateError {
  static func notADirectory(_ path: String) -> StateError {
    .unusable("\(path) is not a directory: name another.")
  }
  static func foreignLink(_ path: String, uid: UInt32) -> StateError {
    .unusable(
      "\(path) is a symbolic link that belongs to user \(uid), who could redirect it: give the path of the"
        + " directory itself.")
  }
  static func foreignDirectory(_ path: String, uid: UInt32) -> StateError {
    .unusable(
      "The directory \(path) belongs to user \(uid), who could replace the state: run as that user, or give the"
        + " directory to this one.")
  }
  static func unprotectedDirectory(_ path: String) -> StateError {
    .unusable(
      "Every user may replace what is in \(path): keep the state in a directory of its own below it, or take the"
        + " permission away (chmod o-w).")
  }
  static func closed(_ path: String) -> StateError {
    .unusable("The store of the state in \(path) was closed: open another.")
  }
}

/// The error of a body; `nil` when there is none.
func error(_ body: () throws(StateError) -> Void) -> StateError? {
  do throws(StateError) { try body() } catch { return error }
  return nil
}

extension FileStatus {
  /// The same with other values.
  func with(kind: Kind? = nil, owner: UInt32? = nil, links: Int? = nil) -> FileStatus {
    FileStatus(
      identity: identity, kind: kind ?? self.kind, owner: owner ?? self.owner,
      links: links ?? self.links, size: size)
  }
}
