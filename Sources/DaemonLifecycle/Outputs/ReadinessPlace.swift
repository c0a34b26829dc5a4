// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The directory of a readiness file, opened: all calls are relative to it.
struct ReadinessPlace {
  let path: String
  let name: String
  let directory: StateHandle

  var temporaryName: String { ".\(name).new" }

  init(
    _ path: String, _ files: any StateFileSystem, _ open: StateHandle? = nil
  ) throws(ReadinessError) {
    self.path = path
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard path.hasPrefix("/"), !path.utf8.contains(0), let last = parts.last,
      !["", ".", ".."].contains(last)
    else {
      throw ReadinessError(
        "The readiness file's path \"\(path)\" is not the absolute path of a file: probes will find none.",
        isForGood: true)
    }
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
      throw error.number == ENOENT
        ? .notMade(path, "there is no directory \(parent): mount or make it")
        : .failed("open its directory \(parent)", path, error)
    }
  }

  func holds(_ identity: FileIdentity) -> Bool {
    (try? directory.status(of: name))?.identity == identity
  }

  /// Makes calls; an error says what for.
  private func calling<Result>(
    _ purpose: String, _ body: () throws(SystemCallError) -> Result
  ) throws(ReadinessError) -> Result {
    do throws(SystemCallError) { return try body() } catch { throw .failed(purpose, path, error) }
  }

  // MARK: Making

  /// Written and locked under another name, so that it appears whole.
  ///
  /// - Parameter spare: What it is made of where no file can be opened.
  func make(
    _ spare: inout SpareFile
  ) throws(ReadinessError) -> (StateHandle, FileIdentity) {
    try calling("make it") { () throws(SystemCallError) in
      let file = try spare.create(temporaryName, in: directory)
      do throws(SystemCallError) {
        try retrying(file.files.lock(file.number))
        let text = "ready\npid \(file.files.processID)\nsince \(WallClock.now())\n"
        try file.write(Array(text.utf8))
        let status = try file.status
        try directory.rename(temporaryName, to: name)
        return (file, status.identity)
      } catch {
        try? directory.remove(temporaryName)
        throw error
      }
    }
  }

  // MARK: Removing

  /// - Parameter gone: Called when nothing of ours is there any more, even if that is an error.
  func remove(_ identity: FileIdentity, gone: () -> Void) throws(ReadinessError) {
    let found = try calling("look at it") { () throws(SystemCallError) in
      try directory.status(of: name)
    }
    if found?.identity == identity { try unlink(name) }
    gone()
    if found == nil {
      throw ReadinessError(
        "The readiness file \(path) had been removed already, and not by this process.")
    }
    if found?.identity != identity {
      throw ReadinessError(
        "The readiness file \(path) was replaced by somebody else's, which stays: probes may find that one."
      )
    }
  }

  private func unlink(_ name: String) throws(ReadinessError) {
    try calling("remove it") { () throws(SystemCallError) in try directory.remove(name) }
  }

  /// Removes what a dead process of this user has left under the name, if there is anything.
  func sweep(_ name: String) throws(ReadinessError) {
    func status() throws(ReadinessError) -> FileStatus? {
      try calling("look at it") { () throws(SystemCallError) in try directory.status(of: name) }
    }
    guard let found = try status() else { return }
    let path = name == self.name ? path : "\(path.dropLast(name.utf8.count + 1))/\(name)"
    func inTheWay(_ what: String) -> ReadinessError {
      .notMade(path, "there is \(what) in its place: take that away")
    }
    switch found.kind {
    case .file: break
    case .directory: throw inTheWay("a directory")
    case .link: throw inTheWay("a symbolic link")
    case .other: throw inTheWay("not a regular file")
    }
    guard found.owner == directory.files.userID else {
      throw .notMade(path, "one of user \(found.owner) is there: take that away")
    }
    do throws(SystemCallError) {
      let file = try directory.open(name, .read)
      try retrying(file.files.lock(file.number))
      let text = try file.read(6)
      // An empty one: the power went before its content had reached the disk.
      guard "ready\n".utf8.starts(with: text), text.count == min(6, found.size) else {
        throw SystemCallError(number: EEXIST)
      }
    } catch {
      switch error.number {
      case EWOULDBLOCK: throw .notMade(path, "a running process has it: give each its own")
      case EEXIST: throw inTheWay("a file that is no readiness file")
      default: throw .failed("look at it", path, error)
      }
    }
    if try status()?.identity == found.identity { try unlink(name) }
  }
}

/// What is wrong with a readiness file, in a sentence.
struct ReadinessError: Error, Hashable, CustomStringConvertible {
  let description: String
  /// For want of a descriptor or of memory, which passes.
  var isShortage = false
  /// No other attempt will do better.
  var isForGood = false

  init(_ description: String, isForGood: Bool = false) {
    (self.description, self.isForGood) = (description, isForGood)
  }

  static func notMade(_ path: String, _ reason: String) -> ReadinessError {
    ReadinessError("The readiness file \(path) can't be made, since \(reason).")
  }

  static func failed(
    _ purpose: String, _ path: String, _ error: SystemCallError
  ) -> ReadinessError {
    let reason = "\(String(cString: strerror(error.number))) (errno \(error.number))"
    var made = ReadinessError("The readiness file \(path): could not \(purpose): \(reason).")
    made.isShortage = error.isShortage
    return made
  }
}
