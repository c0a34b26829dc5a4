// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
public import DaemonSystemd

/// Why a state could not be opened, loaded or saved. What was on disk before is still there.
public enum StateError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The environment does not tell of a state directory, or not properly.
  case noStateDirectory(SystemdError?)
  /// The name, the directory, a file or a store that was closed can't be used: a sentence that says why, and what to
  /// do about it.
  case unusable(String)
  /// Another store has the state, in this process or another; which process, where that is known and it still runs.
  case inUse(String, pid: Int32?)
  /// Something that is not a regular file of its own is where a file should be.
  case notAFile(String)
  /// More bytes than the store allows, of what is to be saved or of the file at the path.
  case tooLong(String, count: UInt64, limit: Int)
  /// There are files, and none of them is whole: a sentence for each.
  case allBroken([String])
  /// It was saved by a later version of the program.
  case newerVersion(String, found: UInt32, known: UInt32)
  /// It was saved with a later release of this package.
  case newerFormat(String, found: UInt32)
  /// It was saved by an earlier version of the program, and could not be brought up to this one.
  case notMigrated(String, from: UInt32, to: UInt32, reason: String)
  /// It is whole, but not what the program takes for a state.
  case undecodable(String, reason: String)
  /// The value to be saved could not be made into bytes.
  case unencodable(reason: String)
  /// No room, or none for this user (ENOSPC, EDQUOT, EFBIG): what it was for.
  case noSpace(String, errno: Int32)
  /// The file system is mounted read-only: what it was for.
  case readOnly(String)
  /// A system call failed: what it was for, and the `errno` value.
  case system(String, errno: Int32)

  public var description: String {
    switch self {
    case .noStateDirectory(let error):
      if let error {
        "\(error)"
      } else {
        "There is no $STATE_DIRECTORY: give the unit a StateDirectory=, or the store a directory."
      }
    case .unusable(let sentence): sentence
    case .inUse(let path, let pid):
      "The state in \(path) is in use by \(pid.map { "process \($0)" } ?? "a process that fuser \(path)/*.lock names"): "
        + "stop that one first, or give each a directory of its own."
    case .notAFile(let path):
      "\(path) is not a file of its own (a directory, a link, or a file with other names): take it away."
    case .tooLong(let path, let count, let limit):
      "The state in \(path) would have \(count) bytes, and \(limit) are allowed: raise the store's limit."
    case .allBroken(let files):
      "No file of the state is whole: \(files.joined(separator: "; ")). Mend one, or set them aside."
    case .newerVersion(let path, let found, let known):
      "\(path) has version \(found) of the state, and this program knows \(known): use the newer program."
    case .newerFormat(let path, let found):
      "\(path) has format \(found), and this program knows \(StateRecord.format): use the newer program."
    case .notMigrated(let path, let from, let to, let reason):
      "\(path) could not be brought from version \(from) to \(to): \(reason)"
    case .undecodable(let path, let reason):
      "\(path) is whole, but not a state of this program: \(reason)"
    case .unencodable(let reason): "The state could not be encoded: \(reason)"
    case .noSpace(let purpose, let errno):
      "Could not \(purpose): \(errnoText(errno)). Make room, and save again; the old state is still there."
    case .readOnly(let purpose):
      "Could not \(purpose): the file system is read-only. The old state is still there."
    case .system(let purpose, let errno):
      "Could not \(purpose): \(errnoText(errno)) (errno \(errno))."
    }
  }

  // MARK: What can't be used

  static func noDirectory(_ path: String) -> StateError {
    .unusable("There is no directory \(path): make it, or name another.")
  }
  static func directoryReplaced(_ path: String) -> StateError {
    .unusable(
      "\(path) is not the directory any more that was opened: nothing is saved there before a restart."
    )
  }
  static func foreignOwner(_ path: String, uid: UInt32) -> StateError {
    .unusable("\(path) belongs to user \(uid): run as that user, or give the file to this one.")
  }

  // MARK: Causes

  /// The error of a step that makes calls and throws errors of its own.
  static func cause(_ purpose: String, _ error: any Error) -> StateError {
    switch error {
    case let error as StateError: error
    case let error as SystemCallError: failed(purpose, error)
    default: system("\(purpose) (\(error))", errno: EINVAL)
    }
  }

  /// The error for a call that failed.
  static func failed(_ purpose: String, _ error: SystemCallError) -> StateError {
    switch error.number {
    case ENOSPC, EDQUOT, EFBIG: .noSpace(purpose, errno: error.number)
    case EROFS: .readOnly(purpose)
    default: .system(purpose, errno: error.number)
    }
  }
}

private func errnoText(_ errno: Int32) -> String { String(cString: strerror(errno)) }
