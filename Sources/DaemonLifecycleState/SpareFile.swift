// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// An unnamed file, opened in advance, which becomes the new file of a process that has no descriptor left.
///
/// A descriptor that is closed to make room is no reserve: a thread that accepts connections takes the number before
/// openat(2) can. So the reserve is the file itself. Once it is used, the next one is opened right after the used one
/// was closed, when its number is most likely free.
struct SpareFile {
  /// The file, empty and unnamed; `nil` while there is none.
  private var file: StateHandle?
  /// Whether the file system supports unnamed files, as far as is known.
  private var isOffered = true

  init() {}

  /// Opens the file unless there is one. If that fails there is no reserve, and the next call tries again.
  mutating func refill(in directory: StateHandle) {
    guard file == nil, isOffered else { return }
    do throws(SystemCallError) {
      let number = try retrying(directory.files.openUnnamed(in: directory.number))
      file = StateHandle(directory.files, number)
    } catch {
      // What can pass is tried again. EISDIR is the answer of kernels that do not know the flag.
      isOffered = ![EOPNOTSUPP, EISDIR, ENOSYS, EINVAL].contains(error.number)
    }
  }

  /// Creates a file of this name in the same directory, open for writing: from the spare one if no other can be opened.
  mutating func create(
    _ name: String, in directory: StateHandle
  ) throws(SystemCallError) -> StateHandle {
    do throws(SystemCallError) { return try directory.open(name, .create) } catch {
      guard error.isShortage, let file else { throw error }
      try named(file, name, in: directory, insteadOf: error)
      self.file = nil
      return file
    }
  }

  private func named(
    _ file: StateHandle, _ name: String, in directory: StateHandle,
    insteadOf shortage: SystemCallError
  ) throws(SystemCallError) {
    do throws(SystemCallError) {
      try retrying(file.files.link(file.number, as: name, in: directory.number))
    } catch {
      // Without /proc there may be no way to give it a name: then what matters is why one was needed.
      throw [ENOENT, EPERM, EACCES, EOPNOTSUPP].contains(error.number) ? shortage : error
    }
  }

  /// Closes the file, when its descriptor is needed otherwise. Returns whether there was one.
  @discardableResult mutating func release() -> Bool { file.take() != nil }
}

extension SystemCallError {
  /// Whether the process, or the machine, lacks descriptors or memory for another open file, which is temporary.
  var isShortage: Bool { SystemdError.isShortage(number) }
}
