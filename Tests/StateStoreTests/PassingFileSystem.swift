// SPDX-License-Identifier: Apache-2.0
import Synchronization

@testable import DaemonLifecycle
@testable import DaemonLifecycleState

/// The kernel's files, with something done before each call.
final class PassingFileSystem: StateFileSystem {
  private let base = LinuxFileSystem.shared
  private let calls = Mutex(0)
  private let before: @Sendable (_ index: Int, _ call: String) -> Void

  /// Whether it says that it has synced, and has not.
  private let lies: Bool

  init(
    lies: Bool = false, before: @escaping @Sendable (_ index: Int, _ call: String) -> Void
  ) {
    self.lies = lies
    self.before = before
  }

  var userID: UInt32 { base.userID }
  var processID: Int32 { base.processID }

  private func call(_ name: String) {
    let index = calls.withLock { calls in
      defer { calls += 1 }
      return calls
    }
    before(index, name)
  }

  func openDirectory(_ path: String, followingLink: Bool) throws(SystemCallError) -> Int32 {
    call("openDirectory")
    return try base.openDirectory(path, followingLink: followingLink)
  }
  func status(ofPath path: String, followingLink: Bool) throws(SystemCallError) -> FileStatus {
    call("statPath")
    return try base.status(ofPath: path, followingLink: followingLink)
  }
  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    call("open \(mode)")
    return try base.open(name, in: directory, mode)
  }
  func openUnnamed(in directory: Int32) throws(SystemCallError) -> Int32 {
    call("openUnnamed")
    return try base.openUnnamed(in: directory)
  }
  func link(_ file: Int32, as name: String, in directory: Int32) throws(SystemCallError) {
    call("link")
    try base.link(file, as: name, in: directory)
  }
  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    call("fstat")
    return try base.status(of: file)
  }
  func status(of name: String, in directory: Int32) throws(SystemCallError) -> FileStatus {
    call("stat")
    return try base.status(of: name, in: directory)
  }
  func names(in directory: Int32) throws(SystemCallError) -> [String] {
    call("names")
    return try base.names(in: directory)
  }
  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    call("read")
    return try base.read(file, count)
  }
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    call("write")
    return try base.write(file, bytes)
  }
  func truncate(_ file: Int32) throws(SystemCallError) {
    call("truncate")
    try base.truncate(file)
  }
  func sync(_ file: Int32) throws(SystemCallError) {
    call("sync")
    if !lies { try base.sync(file) }
  }
  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    call("rename")
    try base.rename(name, to: newName, in: directory)
  }
  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    call("remove")
    try base.remove(name, in: directory)
  }
  func lock(_ file: Int32) throws(SystemCallError) {
    call("lock")
    try base.lock(file)
  }
  func unlock(_ file: Int32) { base.unlock(file) }
  func close(_ file: Int32) { base.close(file) }
}
