// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The system calls that a store makes: the kernel's, or those of a test.
///
/// Each method is one call, and none is repeated here: the store handles EINTR and short writes, so that tests can
/// check that. A name is that of a file in an open directory; only with `AT_FDCWD` it is a path.
protocol StateFileSystem: AnyObject, Sendable {
  var userID: UInt32 { get }

  func open(_ name: String, in directory: Int32, _ mode: FileMode) throws(SystemCallError) -> Int32
  func status(of file: Int32) throws(SystemCallError) -> FileStatus
  func status(
    of name: String, in directory: Int32, followingLink: Bool
  ) throws(SystemCallError) -> FileStatus

  /// Returns up to `count` bytes from where the last read ended; none at the end.
  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8]
  /// Returns the number of bytes that were written, which may be fewer.
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int
  func sync(_ file: Int32) throws(SystemCallError)
  func rename(_ name: String, to newName: String, in directory: Int32) throws(SystemCallError)
  func remove(_ name: String, in directory: Int32) throws(SystemCallError)
  /// Takes an exclusive advisory lock; EWOULDBLOCK when it is held.
  func lock(_ file: Int32) throws(SystemCallError)
  func unlock(_ file: Int32)
  func close(_ file: Int32)
}

/// How a file is opened. Only a linked directory may be a symbolic link; for another it is ENOTDIR or ELOOP.
enum FileMode {
  case read
  case directory, linkedDirectory
  /// A new file, 0600; EEXIST when there is one.
  case create
  /// For reading and writing, made when there is none.
  case lock
}

struct SystemCallError: Error, Equatable {
  let number: Int32
}

struct FileStatus: Equatable {
  enum Kind { case file, directory, link, other }

  let identity: FileIdentity
  let kind: Kind
  let owner: UInt32
  let links: Int
  let size: Int
  /// Whether every user may write to it and it is not sticky, so that any user can replace files in a directory.
  var isOpenToAll = false
}

/// Repeats a call as long as a signal interrupts it.
func retrying<Result>(
  _ call: @autoclosure () throws(SystemCallError) -> Result
) throws(SystemCallError) -> Result {
  while true {
    do throws(SystemCallError) { return try call() } catch {
      if error.number != EINTR { throw error }
    }
  }
}
