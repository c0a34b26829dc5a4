import CLinux
import DaemonSystemd

/// The directory of a readiness file, opened: all calls are relative to it.
struct ReadinessPlace {
  let path: String
  let name: String
  let files: any StateFileSystem
  let directory: StateHandle

  var temporaryName: String { ".\(name).new" }

  init(
    _ path: String, _ files: any StateFileSystem, _ open: StateHandle? = nil
  ) throws(ReadinessError) {
    self.path = path
    self.files = files
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard path.hasPrefix("/"), !path.utf8.contains(0), let last = parts.last,
      !["", ".", ".."].contains(last)
    else { throw .notAPath(path) }
    name = String(last)
    if let open {
      directory = open
      return
    }
    let parent = parts.count > 2 ? parts.dropLast().joined(separator: "/") : "/"
    do throws(SystemCallError) {
      let number = try retrying(files.openDirectory(parent, followingLink: true))
      directory = StateHandle(files, number)
    } catch {
      guard error.number != ENOENT else { throw .noDirectory(path, directory: parent) }
      throw .system("open its directory \(parent)", path, errno: error.number)
    }
  }

  /// Whether the name leads to this file.
  func holds(_ identity: FileIdentity) -> Bool {
    (try? status(of: name))?.identity == identity
  }

  // MARK: Making

  /// Written and locked under another name, so that it appears whole.
  ///
  /// - Parameter spare: What it is made of where no file can be opened.
  func make(
    _ spare: inout SpareFile
  ) throws(ReadinessError) -> (StateHandle, FileIdentity) {
    let file: StateHandle
    do throws(SystemCallError) {
      file = try spare.create(temporaryName, files, in: directory)
    } catch { throw .system("make it", path, errno: error.number) }
    do throws(SystemCallError) {
      try retrying(files.lock(file.number))
      var rest = Array("ready\npid \(files.processID)\nsince \(WallClock.now())\n".utf8)[...]
      while !rest.isEmpty {
        let count = try retrying(files.write(file.number, rest))
        if count == 0 { throw SystemCallError(number: EIO) }
        rest = rest.dropFirst(count)
      }
      let status = try retrying(files.status(of: file.number))
      try retrying(files.rename(temporaryName, to: name, in: directory.number))
      return (file, status.identity)
    } catch {
      try? files.remove(temporaryName, in: directory.number)
      throw .system("make it", path, errno: error.number)
    }
  }

  // MARK: Removing

  /// - Parameter gone: Called when nothing of ours is there any more, even if that is an error.
  func remove(_ identity: FileIdentity, gone: () -> Void) throws(ReadinessError) {
    guard let found = try status(of: name) else {
      gone()
      throw .removedByAnother(path)
    }
    guard found.identity == identity else {
      gone()
      throw .replaced(path)
    }
    try unlink(name)
    gone()
  }

  /// Removes what a dead process of this user has left under the name, if there is anything.
  func sweep(_ name: String) throws(ReadinessError) {
    guard let found = try status(of: name) else { return }
    let path = name == self.name ? path : "\(directoryPath)/\(name)"
    switch found.kind {
    case .file: break
    case .directory: throw .inTheWay(path, "a directory")
    case .link: throw .inTheWay(path, "a symbolic link")
    case .other: throw .inTheWay(path, "not a regular file")
    }
    guard found.owner == files.userID else { throw .foreignOwner(path, uid: found.owner) }
    let file = try open(name, .read, "look at it")
    do throws(SystemCallError) {
      try retrying(files.lock(file.number))
      let text = try retrying(files.read(file.number, 6))
      // An empty one: the power went before its content had reached the disk.
      guard "ready\n".utf8.starts(with: text), text.count == min(6, found.size) else {
        throw SystemCallError(number: EEXIST)
      }
    } catch {
      switch error.number {
      case EWOULDBLOCK: throw .inUse(path)
      case EEXIST: throw .inTheWay(path, "a file that is no readiness file")
      default: throw .system("look at it", path, errno: error.number)
      }
    }
    guard let again = try status(of: name), again.identity == found.identity else { return }
    try unlink(name)
  }

  private var directoryPath: Substring { path.dropLast(name.utf8.count + 1) }

  // MARK: Calls

  private func status(of name: String) throws(ReadinessError) -> FileStatus? {
    do throws(SystemCallError) {
      return try retrying(files.status(of: name, in: directory.number))
    } catch {
      if error.number == ENOENT { return nil }
      throw .system("look at it", path, errno: error.number)
    }
  }

  private func open(
    _ name: String, _ mode: FileMode, _ purpose: String
  ) throws(ReadinessError) -> StateHandle {
    do throws(SystemCallError) {
      let number = try retrying(files.open(name, in: directory.number, mode))
      return StateHandle(files, number)
    } catch { throw .system(purpose, path, errno: error.number) }
  }

  private func unlink(_ name: String) throws(ReadinessError) {
    do throws(SystemCallError) {
      try retrying(files.remove(name, in: directory.number))
    } catch {
      if error.number != ENOENT { throw .system("remove it", path, errno: error.number) }
    }
  }
}
