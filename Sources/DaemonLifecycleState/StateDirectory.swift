// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The directory of a state, opened once. All further calls are relative to it, so a path that is redirected later does
/// not redirect a save.
final class StateDirectory: Sendable {
  let path: String
  let handle: StateHandle

  init(_ givenPath: String, _ files: any StateFileSystem) throws(StateError) {
    var path = givenPath
    // A trailing slash would follow a link.
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    handle = try StateDirectory.open(path, files)
    let found = handle.opened
    // A user who may rename and remove files here decides which state is loaded.
    guard found.owner == 0 || found.owner == files.userID else {
      throw .unusable(
        "The directory \(path) belongs to user \(found.owner), who could replace the state: run as that user, or give the"
          + " directory to this one.")
    }
    guard !found.isOpenToAll else {
      throw .unusable(
        "Every user may replace what is in \(path): keep the state in a directory of its own below it, or take the"
          + " permission away (chmod o-w).")
    }
  }

  func path(of name: String) -> String { "\(path)/\(name)" }

  // MARK: Opening

  /// Opens the directory. A symbolic link is followed if root or this user owns it, as systemd's for DynamicUser= is:
  /// that owner has access here anyway. Any other user could point it at a place where this process may write and that
  /// user may not.
  private static func open(
    _ path: String, _ files: any StateFileSystem
  ) throws(StateError) -> StateHandle {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw .noDirectory(path) }
    do {
      let found = try retrying(files.status(of: path, in: AT_FDCWD, followingLink: false))
      let isLink = found.kind == .link
      guard !isLink || found.owner == 0 || found.owner == files.userID else {
        throw StateError.unusable(
          "\(path) is a symbolic link that belongs to user \(found.owner), who could redirect it: give the path of the"
            + " directory itself.")
      }
      let number = try retrying(
        files.open(path, in: AT_FDCWD, isLink ? .linkedDirectory : .directory))
      return try StateHandle(files, number)
    } catch let error as SystemCallError {
      throw cause(error, path)
    } catch { throw .cause("open the state directory \(path)", error) }
  }

  private static func cause(_ error: SystemCallError, _ path: String) -> StateError {
    switch error.number {
    case ENOENT: .noDirectory(path)
    case ENOTDIR, ELOOP: .unusable("\(path) is not a directory: name another.")
    default: .failed("open the state directory \(path)", error)
    }
  }

  /// Returns the directory for the next call: this one, opened again if other code of the process has closed it; or, if
  /// this one was removed, the one made in its place. Throws if the path leads to another one while this one exists: a
  /// state saved in this one would not be found again.
  func current() throws(StateError) -> StateDirectory {
    let found: FileStatus
    do throws(SystemCallError) {
      found = try retrying(handle.files.status(of: path, in: AT_FDCWD, followingLink: true))
    } catch {
      let isMoved = error.number == ENOENT && !handle.isRemoved
      throw isMoved ? .directoryReplaced(path) : StateDirectory.cause(error, path)
    }
    if found.identity == handle.opened.identity, handle.isOwn { return self }
    let again = try StateDirectory(path, handle.files)
    guard again.handle.opened.identity == handle.opened.identity || handle.isRemoved else {
      throw .directoryReplaced(path)
    }
    return again
  }
}
