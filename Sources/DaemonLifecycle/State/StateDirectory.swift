import CLinux
import DaemonSystemd

/// The directory of a state, opened once: all that follows is relative to it, so a path that is led elsewhere later
/// can't lead a save with it.
final class StateDirectory: Sendable {
  let path: String
  let files: any StateFileSystem
  let handle: StateHandle
  private let identity: FileIdentity

  init(_ givenPath: String, _ files: any StateFileSystem) throws(StateError) {
    var path = givenPath
    // A slash at its end would follow a link.
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    self.files = files
    handle = try StateDirectory.open(path, files)
    let found: FileStatus
    do throws(SystemCallError) {
      let number = handle.number
      found = try retrying(files.status(of: number))
    } catch { throw .failed("open the state directory \(path)", error) }
    // Whoever may rename and remove here decides which state is loaded.
    guard found.owner == 0 || found.owner == files.userID else {
      throw .foreignDirectory(path, uid: found.owner)
    }
    guard !found.isOpenToAll else { throw .unprotectedDirectory(path) }
    identity = found.identity
  }

  func path(of name: String) -> String { "\(path)/\(name)" }

  // MARK: Opening

  /// A link is followed if it is root's or this user's, as systemd's for DynamicUser= is: its owner can do what it
  /// likes here anyway. Anybody else could lead it to where we may write and they may not.
  private static func open(
    _ path: String, _ files: any StateFileSystem
  ) throws(StateError) -> StateHandle {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw .noDirectory(path) }
    do throws(SystemCallError) {
      return try opened(path, files, followingLink: false)
    } catch {
      guard error.number == ENOTDIR || error.number == ELOOP else { throw cause(error, path) }
    }
    let owner: UInt32
    do throws(SystemCallError) {
      let status = try retrying(files.status(ofPath: path, followingLink: false))
      guard status.kind == .link else { throw SystemCallError(number: ENOTDIR) }
      owner = status.owner
    } catch { throw cause(error, path) }
    guard owner == 0 || owner == files.userID else { throw .foreignLink(path, uid: owner) }
    do throws(SystemCallError) { return try opened(path, files, followingLink: true) } catch {
      throw cause(error, path)
    }
  }

  private static func opened(
    _ path: String, _ files: any StateFileSystem, followingLink: Bool
  ) throws(SystemCallError) -> StateHandle {
    let number = try retrying(files.openDirectory(path, followingLink: followingLink))
    return StateHandle(files, number)
  }

  private static func cause(_ error: SystemCallError, _ path: String) -> StateError {
    switch error.number {
    case ENOENT: .noDirectory(path)
    case ENOTDIR, ELOOP: .notADirectory(path)
    default: .failed("open the state directory \(path)", error)
    }
  }

  // MARK: Calls

  /// Throws when the path does not lead here any more: what is saved here would not be found again.
  func check() throws(StateError) {
    let found: FileStatus
    do throws(SystemCallError) {
      found = try retrying(files.status(ofPath: path, followingLink: true))
    } catch { throw StateDirectory.cause(error, path) }
    guard found.identity == identity else { throw .directoryReplaced(path) }
  }

  func open(_ name: String, _ mode: FileMode) throws(SystemCallError) -> StateHandle {
    let number = try retrying(files.open(name, in: handle.number, mode))
    return StateHandle(files, number)
  }

  func status(of file: StateHandle) throws(SystemCallError) -> FileStatus {
    try retrying(files.status(of: file.number))
  }

  /// `nil` when there is nothing of this name.
  func status(of name: String) throws(SystemCallError) -> FileStatus? {
    do throws(SystemCallError) {
      return try retrying(files.status(of: name, in: handle.number))
    } catch {
      if error.number == ENOENT { return nil }
      throw error
    }
  }

  func names() throws(SystemCallError) -> [String] {
    try retrying(files.names(in: handle.number))
  }

  func rename(_ name: String, to newName: String) throws(SystemCallError) {
    try retrying(files.rename(name, to: newName, in: handle.number))
  }

  /// Fine when it has gone already.
  func remove(_ name: String) throws(SystemCallError) {
    do throws(SystemCallError) {
      try retrying(files.remove(name, in: handle.number))
    } catch { if error.number != ENOENT { throw error } }
  }

  func sync(_ file: StateHandle) throws(SystemCallError) {
    try retrying(files.sync(file.number))
  }

  /// Makes the names durable. EINVAL comes from a file system that has no such call and does what it can.
  func syncNames() throws(SystemCallError) {
    do throws(SystemCallError) { try sync(handle) } catch {
      if error.number != EINVAL { throw error }
    }
  }

  func write(_ bytes: [UInt8], to file: StateHandle) throws(SystemCallError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try retrying(files.write(file.number, rest))
      // The kernel does not say so of a regular file; if it did, this would never end.
      if count == 0 { throw SystemCallError(number: EIO) }
      rest = rest.dropFirst(count)
    }
  }

  /// Everything up to `count` bytes.
  func read(_ file: StateHandle, _ count: Int) throws(SystemCallError) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = try retrying(files.read(file.number, count - bytes.count))
      if more.isEmpty { break }
      if bytes.isEmpty { bytes = more } else { bytes += more }
    }
    return bytes
  }
}
