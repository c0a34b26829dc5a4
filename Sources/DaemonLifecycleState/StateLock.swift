// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
import DaemonSystemd

/// The advisory lock on a state: a file beside it, locked with flock(2) as long as this value lives, and never removed.
///
/// The kernel releases it when the process ends, however it ends, and with it each child that was forked meanwhile and
/// has not called execve(2). Such a child does not use the lock: it has to take it itself, and can't while the parent
/// lives.
final class StateLock: Sendable {
  /// The process that took the lock, which may be the parent of this one.
  private let owner: Int32
  private let file: StateHandle
  private let identity: FileIdentity
  private let name: String

  /// Takes the lock. Throws `inUse` when it is held already.
  init(_ name: String, in directory: StateDirectory) throws(StateError) {
    let purpose = "lock the state in \(directory.path)"
    do {
      // Another process may remove or replace the file between opening and locking it, but not for ever.
      for _ in 0..<100 {
        let file = try directory.handle.open(name, .lock)
        let status = try file.status
        if status.links == 0 { continue }
        guard status.kind == .file, status.links == 1 else {
          throw StateError.notAFile(directory.path(of: name))
        }
        guard status.owner == file.files.userID else {
          throw StateError.foreignOwner(directory.path(of: name), uid: status.owner)
        }
        try StateLock.lock(file, in: directory)
        guard try directory.handle.status(of: name)?.identity == status.identity else { continue }
        StateLock.sign(file)
        self.file = file
        self.name = name
        owner = file.files.processID
        identity = status.identity
        return
      }
      throw SystemCallError(number: EAGAIN)
    } catch let error as SystemCallError where [ELOOP, EISDIR, ENXIO].contains(error.number) {
      throw .notAFile(directory.path(of: name))
    } catch { throw .cause(purpose, error) }
  }

  /// Unlocks, since closing is not enough: a child that is being spawned right now has the file open until it calls
  /// execve(2). A forked child only closes, since unlocking would take the lock from the parent.
  deinit { if file.files.processID == owner { file.files.unlock(file.number) } }

  /// Whether the lock file's path still leads to this lock, so that another process would find it held.
  func isStill(in directory: StateDirectory) throws(SystemCallError) -> Bool {
    guard file.files.processID == owner else { return false }
    return try directory.handle.status(of: name)?.identity == identity
  }

  private static func lock(_ file: StateHandle, in directory: StateDirectory) throws {
    do throws(SystemCallError) {
      try retrying(file.files.lock(file.number))
    } catch {
      guard error.number == EWOULDBLOCK else { throw error }
      let text = (try? file.read(32)) ?? []
      // The process named in the file may have ended, with a child that still holds the lock, or be in another
      // container.
      let pid = decimal(text.prefix { $0 != 0x0a }, as: Int32.self)
      throw StateError.inUse(
        directory.path, pid: pid.flatMap { file.files.isRunning($0) ? $0 : nil })
    }
  }

  /// Writes the process ID into the file, for the error of the next process. A failure is ignored: the disk may be
  /// full, and the lock holds.
  private static func sign(_ file: StateHandle) {
    guard (try? file.files.truncate(file.number)) != nil else { return }
    try? file.write(Array("\(file.files.processID)\n".utf8))
  }
}
