// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

final class LinuxFileSystem: StateFileSystem {
  static let shared = LinuxFileSystem()

  var userID: UInt32 { geteuid() }

  @discardableResult
  private func check<Answer: SignedInteger>(_ answer: Answer) throws(SystemCallError) -> Answer {
    if answer < 0 { throw SystemCallError(number: clinux_errno()) }
    return answer
  }

  private func status(_ call: (inout stat) -> Int32) throws(SystemCallError) -> FileStatus {
    var found = stat()
    try check(call(&found))
    return FileStatus(found)
  }

  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    let flags =
      switch mode {
      case .read: O_RDONLY | O_NOFOLLOW
      case .directory: O_RDONLY | O_DIRECTORY | O_NOFOLLOW
      case .linkedDirectory: O_RDONLY | O_DIRECTORY
      case .create: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
      case .lock: O_RDWR | O_CREAT | O_NOFOLLOW
      }
    return try check(clinux_open_at(directory, name, flags, 0o600))
  }

  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    try status { fstat(file, &$0) }
  }

  func status(
    of name: String, in directory: Int32, followingLink: Bool
  ) throws(SystemCallError) -> FileStatus {
    try status { fstatat(directory, name, &$0, followingLink ? 0 : AT_SYMLINK_NOFOLLOW) }
  }

  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    var result = 0
    // The buffer is ours for the call, and only the bytes that the kernel has read become part of the array.
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      result = CLinux.read(file, buffer.baseAddress, count)
      initialized = max(0, result)
    }
    try check(result)
    return bytes
  }

  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try check(bytes.withUnsafeBytes { clinux_write(file, $0.baseAddress, $0.count) })
  }

  func sync(_ file: Int32) throws(SystemCallError) { try check(fsync(file)) }

  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    try check(renameat(directory, name, directory, newName))
  }

  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    try check(unlinkat(directory, name, 0))
  }

  func lock(_ file: Int32) throws(SystemCallError) {
    try check(flock(file, LOCK_EX | LOCK_NB))
  }

  func unlock(_ file: Int32) { flock(file, LOCK_UN) }

  func close(_ file: Int32) { _ = CLinux.close(file) }
}

extension FileStatus {
  fileprivate init(_ found: stat) {
    identity = FileIdentity(device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
    kind =
      switch Int32(truncatingIfNeeded: found.st_mode) & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      case S_IFLNK: .link
      default: .other
      }
    owner = found.st_uid
    isOpenToAll = found.st_mode & 0o1002 == 0o0002  // S_ISVTX and S_IWOTH
    links = Int(found.st_nlink)
    size = Int(found.st_size)
  }
}
