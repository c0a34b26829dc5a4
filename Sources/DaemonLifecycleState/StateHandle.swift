// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// An open file or directory, closed with its last reference. Calls that a signal interrupts are repeated.
///
/// Other code of the process may close the number by mistake, as with a second close(2), and reuse it for its own file.
/// That file is neither used nor closed.
final class StateHandle: Sendable {
  let files: any StateFileSystem
  let number: Int32
  /// The status of the file when it was opened.
  let opened: FileStatus
  /// Whether the number was found not to be this file's. It stays so: the file, opened again, may get the same number.
  private let isLost = Atomic<Bool>(false)

  /// Takes over a number that was just opened.
  init(_ files: any StateFileSystem, _ number: Int32) throws(SystemCallError) {
    self.files = files
    self.number = number
    do throws(SystemCallError) { opened = try retrying(files.status(of: number)) } catch {
      files.close(number)
      throw error
    }
  }

  deinit { if isOwn { files.close(number) } }

  /// Whether the number still leads to the file that was opened.
  var isOwn: Bool {
    if isLost.load(ordering: .relaxed) { return false }
    do throws(SystemCallError) {
      if try retrying(files.status(of: number)).identity == opened.identity { return true }
    } catch { if error.number != EBADF { return true } }
    isLost.store(true, ordering: .relaxed)
    return false
  }

  /// Whether it is open, and no name leads to it any more.
  var isRemoved: Bool { isOwn && (try? retrying(files.status(of: number)))?.links == 0 }

  func sync() throws(SystemCallError) { try retrying(files.sync(number)) }

  func write(_ bytes: [UInt8]) throws(SystemCallError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try retrying(files.write(number, rest))
      // The kernel does not return 0 for a regular file; if it did, this would never end.
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
    return try StateHandle(files, file)
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

  /// Removes a file, if it can.
  func remove(_ name: String) { try? retrying(files.remove(name, in: number)) }

  /// Makes the names durable. EINVAL is ignored: the file system does not support the call.
  func syncNames() throws(SystemCallError) {
    do throws(SystemCallError) { try sync() } catch { if error.number != EINVAL { throw error } }
  }
}
