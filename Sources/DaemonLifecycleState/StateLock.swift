// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The advisory lock on a state: a file beside it, locked with flock(2) as long as this value lives, and never removed.
///
/// The kernel releases it when the process has ended, in whatever way, and with it each child that was forked meanwhile
/// and has not called execve(2).
final class StateLock: Sendable {
  private let file: StateHandle
  private let name: String

  /// Takes the lock. Throws `inUse` when it is held already.
  init(_ name: String, in directory: StateDirectory) throws(StateError) {
    self.name = name
    let purpose = "lock the state in \(directory.path)"
    do {
      // Another process may remove or replace the file between opening and locking it, but not for ever.
      for _ in 0..<100 {
        let file = try directory.handle.open(name, .lock)
        let status = file.opened
        if status.links == 0 { continue }
        guard status.kind == .file, status.links == 1 else {
          throw StateError.notAFile(path: directory.path(of: name))
        }
        guard status.owner == file.files.userID else {
          throw StateError.foreignOwner(directory.path(of: name), uid: status.owner)
        }
        try retrying(file.files.lock(file.number))
        guard try directory.handle.status(of: name)?.identity == status.identity else { continue }
        self.file = file
        return
      }
      throw SystemCallError(number: EBUSY)
    } catch let error as SystemCallError where [ELOOP, EISDIR, ENXIO].contains(error.number) {
      throw .notAFile(path: directory.path(of: name))
    } catch let error as SystemCallError where error.number == EWOULDBLOCK {
      throw .inUse(path: directory.path)
    } catch let error as SystemCallError where error.number == EACCES {
      // The file is that of a process that ran as another user, perhaps root.
      guard let owner = try? directory.handle.status(of: name)?.owner,
        owner != directory.handle.files.userID
      else { throw .failed(purpose, error) }
      throw .foreignOwner(directory.path(of: name), uid: owner)
    } catch { throw .cause(purpose, error) }
  }

  /// Unlocks, since closing is not enough: a child that is being spawned right now has the file open until it calls
  /// execve(2).
  deinit { if file.isOwn { file.files.unlock(file.number) } }

  /// Whether the lock still holds: the file is open, and its path still leads to it, so that another process would find
  /// it locked.
  func isStill(in directory: StateDirectory) throws(SystemCallError) -> Bool {
    let current = try directory.handle.status(of: name)?.identity
    return file.isOwn && current == file.opened.identity
  }
}
