// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
import DaemonSystemd

/// The advisory lock on a state: a file beside it, locked with flock(2) as long as this value lives, and never removed.
///
/// The kernel lets go of it when the process ends, however it ends. A child that was forked does not have it: its lock
/// is to be taken anew. Only what was started by vfork(2) or clone(2), and has not executed anything yet, has it too.
final class StateLock: Sendable {
  /// The process that has the lock, which may be the parent of this one.
  private let owner: Int32
  private let file: StateHandle
  private let identity: FileIdentity
  private let name: String

  /// Throws `inUse` when somebody has it.
  init(_ name: String, in directory: StateDirectory) throws(StateError) {
    let purpose = "lock the state in \(directory.path)"
    do {
      // Somebody may remove or replace the file between our opening and locking it; but not for ever.
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

  /// Not only by closing: a child that is being spawned right now has the file open until it executes something. Only
  /// by closing in a child, where unlocking would take the lock from the parent.
  deinit { if file.files.processID == owner { file.files.unlock(file.number) } }

  /// Whether whoever asks for the lock now still meets this one.
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
      // Whoever has signed may have ended, with a child that still has the lock, or be in another container.
      let pid = decimal(text.prefix { $0 != 0x0a }, as: Int32.self)
      throw StateError.inUse(
        directory.path, pid: pid.flatMap { file.files.isRunning($0) ? $0 : nil })
    }
  }

  /// Says who has it, for the error of the next. Not worth an error: the disk may be full, and the lock holds.
  private static func sign(_ file: StateHandle) {
    guard (try? file.files.truncate(file.number)) != nil else { return }
    try? file.write(Array("\(file.files.processID)\n".utf8))
  }
}
