// SPDX-License-Identifier: Apache-2.0
import CLinux

/// An open file or directory, closed with its last reference. Calls that a signal interrupts are repeated.
final class StateHandle: Sendable {
  let files: any StateFileSystem
  let number: Int32

  init(_ files: any StateFileSystem, _ number: Int32) {
    self.files = files
    self.number = number
  }

  deinit { files.close(number) }

  var status: FileStatus {
    get throws(SystemCallError) { try retrying(files.status(of: number)) }
  }

  func sync() throws(SystemCallError) { try retrying(files.sync(number)) }

  func write(_ bytes: [UInt8]) throws(SystemCallError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try retrying(files.write(number, rest))
      // Of a regular file the kernel does not return 0; if it did, this would never end.
      if count == 0 { throw SystemCallError(number: EIO) }
      rest = rest.dropFirst(count)
    }
  }

  func read(_ count: Int) throws(SystemCallError) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = try retrying(files.read(number, count - bytes.count))
      if more.isEmpty { break }
      if bytes.isEmpty { bytes = more } else { bytes += more }
    }
    return bytes
  }

  // MARK: In a directory

  func open(_ name: String, _ mode: FileMode) throws(SystemCallError) -> StateHandle {
    let file = try retrying(files.open(name, in: number, mode))
    return StateHandle(files, file)
  }

  /// Returns the status of a file; `nil` when there is none of this name.
  func status(of name: String) throws(SystemCallError) -> FileStatus? {
    do throws(SystemCallError) {
      return try retrying(files.status(of: name, in: number, followingLink: false))
    } catch {
      if error.number == ENOENT { return nil }
      throw error
    }
  }

  func rename(_ name: String, to newName: String) throws(SystemCallError) {
    try retrying(files.rename(name, to: newName, in: number))
  }

  /// Removes a file; it is no error if it does not exist.
  func remove(_ name: String) throws(SystemCallError) {
    do throws(SystemCallError) { try retrying(files.remove(name, in: number)) } catch {
      if error.number != ENOENT { throw error }
    }
  }

  /// Makes the names durable. EINVAL is ignored: the file system does not support the call.
  func syncNames() throws(SystemCallError) {
    do throws(SystemCallError) { try sync() } catch { if error.number != EINVAL { throw error } }
  }
}
