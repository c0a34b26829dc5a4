// SPDX-License-Identifier: Apache-2.0
import CLinux
public import DaemonLifecycle
public import DaemonSystemd

/// An error in opening, loading, saving or setting aside a state. The state that was on disk before is unchanged,
/// except as the call documents. Minor versions may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum StateError: ExitStatusError, Sendable, Equatable, CustomStringConvertible {
  /// The environment contains no state directory, or a malformed one.
  case noStateDirectory(SystemdError?)
  /// The name, the directory, a file or a closed store can't be used; the sentence gives the reason and a remedy.
  case unusable(String)
  /// Another store, in this process or another, has the state locked.
  case inUse(path: String)
  /// The path of a file leads to something else, such as a directory or a link.
  case notAFile(path: String)
  /// The bytes to be saved, or the file at the path, exceed the store's limit.
  case tooLong(path: String, count: UInt64, limit: Int)
  /// Files exist, but none of them is intact; there is one sentence for each.
  case allBroken([String])
  /// The state was saved by a later version of the program. `before` is the file with the state from before, if there is one.
  case newerVersion(path: String, found: UInt32, known: UInt32, before: String? = nil)
  /// The state was saved with a later release of this package.
  case newerFormat(path: String, found: UInt32)
  /// The state is intact, but could not be decoded.
  case undecodable(path: String, reason: String)
  /// The value to be saved could not be encoded.
  case unencodable(reason: String)
  /// The disk is full, or the user's quota is used up (ENOSPC, EDQUOT, EFBIG).
  case noSpace(purpose: String, errno: Int32)
  /// The file system is mounted read-only.
  case readOnly(purpose: String)
  /// A system call failed.
  case system(purpose: String, errno: Int32)

  /// The status of a daemon whose set-up throws it: 73 (EX_CANTCREAT).
  public var exitStatus: Int32 { 73 }

  /// The error in one sentence, for a log.
  public var description: String {
    switch self {
    case .noStateDirectory(let error):
      if let error {
        "\(error)"
      } else {
        "There is no $STATE_DIRECTORY: give the unit a StateDirectory=, or the store a directory."
      }
    case .unusable(let sentence): sentence
    case .inUse(let path):
      "The state in \(path) is in use by the process that `fuser \(path)/*.lock` names: stop it first. In this process it is"
        + " a store that is not closed."
    case .notAFile(let path):
      "\(path) is not a file of its own (a directory, a link, or a file with several links): remove it."
    case .tooLong(let path, let count, let limit):
      "The state in \(path) would have \(count) bytes, and \(limit) are allowed: raise the store's limit."
    case .allBroken(let files):
      "No state file is intact: \(files.joined(separator: "; ")). Repair one, or rename all to start afresh."
    case .newerVersion(let path, let found, let known, let before):
      "\(path) has version \(found) of the state, and this program knows \(known): use the newer program"
        + (before.map { ", or move that file away: \($0) has the state from before" } ?? "") + "."
    case .newerFormat(let path, let found):
      "\(path) has format \(found), and this program knows \(StateRecord.format): use the newer program."
    case .undecodable(let path, let reason):
      "\(path) is intact, but not a state of this program: \(reason)"
    case .unencodable(let reason): "The state could not be encoded: \(reason)"
    case .noSpace(let purpose, let errno):
      "Could not \(purpose): \(String(cString: strerror(errno))). "
        + (errno == EFBIG ? "Raise the limit on a file's size (LimitFSIZE=)" : "Make room")
        + ", and save again; what was saved before is still there."
    case .readOnly(let purpose):
      "Could not \(purpose): the file system is read-only. What was saved before is still there."
    case .system(let purpose, let errno):
      "Could not \(purpose): \(String(cString: strerror(errno))) (errno \(errno))."
    }
  }

  // MARK: Unusable files

  static func noDirectory(_ path: String) -> StateError {
    .unusable("There is no directory \(path): make it, or name another.")
  }
  static func directoryReplaced(_ path: String) -> StateError {
    .unusable(
      "\(path) is no longer the directory that was opened: put that one back. A restart uses the new one, without what is"
        + " not saved yet.")
  }
  static func foreignOwner(_ path: String, uid: UInt32) -> StateError {
    .unusable("\(path) belongs to user \(uid): run as that user, or give the file to this one.")
  }

  // MARK: Causes

  /// Makes an error of the error that a step has thrown, which may be that of a system call.
  static func cause(_ purpose: String, _ error: any Error) -> StateError {
    switch error {
    case let error as StateError: error
    case let error as SystemCallError: failed(purpose, error)
    default: system(purpose: "\(purpose) (\(error))", errno: EINVAL)
    }
  }

  /// Makes the error for a system call that failed.
  static func failed(_ purpose: String, _ error: SystemCallError) -> StateError {
    switch error.number {
    case ENOSPC, EDQUOT, EFBIG: .noSpace(purpose: purpose, errno: error.number)
    case EROFS: .readOnly(purpose: purpose)
    default: .system(purpose: purpose, errno: error.number)
    }
  }
}
