// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

@testable import DaemonLifecycle
@testable import DaemonLifecycleState

/// The files of states in memory: what a store leaves here is there for the next, as on a disk.
///
/// Two stores at a time conflict as they would on a disk. Safe to use from any thread.
final class StateMemory: Sendable {
  static let path = "(memory)"
  let files = MemoryFileSystem()

  /// While it is not `nil`, whatever would write fails with this `errno` value.
  var failure: Int32? {
    get { files.failure }
    set { files.failure = newValue }
  }

  /// The files and what is in them.
  var contents: [String: [UInt8]] {
    get { files.contents }
    set { files.contents = newValue }
  }
}

extension StateStore {
  convenience init(
    memory: StateMemory, name: String = "state", version: UInt32 = 1,
    limit: Int = 64 << 20, migrate: Migration? = nil
  ) throws(StateError) {
    try self.init(
      StateMemory.path, name, version: version, limit: limit, migrate: migrate,
      files: memory.files)
  }
}

/// One directory, without power cuts.
final class MemoryFileSystem: StateFileSystem {
  private struct Node {
    var bytes: [UInt8] = []
    var links = 1
    /// The descriptor that has it locked.
    var lock: Int32?
  }

  private struct Open {
    let inode: UInt64
    var offset = 0
  }

  private struct State {
    var nodes: [UInt64: Node] = [:]
    var names: [String: UInt64] = [:]
    var open: [Int32: Open] = [:]
    var lastInode: UInt64 = 1
    var lastDescriptor: Int32 = 0
    var failure: Int32?

    mutating func write() throws(SystemCallError) {
      if let failure { throw SystemCallError(number: failure) }
    }

    mutating func make(_ name: String, _ bytes: [UInt8] = []) -> UInt64 {
      lastInode += 1
      nodes[lastInode] = Node(bytes: bytes)
      names[name] = lastInode
      return lastInode
    }

    mutating func unlink(_ name: String) -> Bool {
      guard let inode = names.removeValue(forKey: name) else { return false }
      nodes[inode]?.links -= 1
      forget(inode)
      return true
    }

    mutating func forget(_ inode: UInt64) {
      guard nodes[inode]?.links == 0, !open.values.contains(where: { $0.inode == inode }) else {
        return
      }
      nodes[inode] = nil
    }

    mutating func open(_ inode: UInt64) -> Int32 {
      lastDescriptor += 1
      open[lastDescriptor] = Open(inode: inode)
      return lastDescriptor
    }

    func inode(_ descriptor: Int32) throws(SystemCallError) -> UInt64 {
      guard let file = open[descriptor] else { throw SystemCallError(number: EBADF) }
      return file.inode
    }

    func status(_ inode: UInt64, _ user: UInt32) -> FileStatus {
      let node = nodes[inode]
      return FileStatus(
        identity: FileIdentity(device: 0, inode: inode),
        kind: inode == MemoryFileSystem.root ? .directory : .file, owner: user,
        links: node?.links ?? 1, size: node?.bytes.count ?? 0)
    }
  }

  private static let root: UInt64 = 1
  private let state = Mutex(State())

  var userID: UInt32 { geteuid() }
  var processID: Int32 { getpid() }

  var failure: Int32? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  var contents: [String: [UInt8]] {
    get { state.withLock { state in state.names.mapValues { state.nodes[$0]?.bytes ?? [] } } }
    set {
      state.withLock { state in
        for name in state.names.keys where newValue[name] == nil { _ = state.unlink(name) }
        for (name, bytes) in newValue {
          let inode = state.names[name] ?? state.make(name)
          state.nodes[inode]?.bytes = bytes
        }
      }
    }
  }

  private func change<Result>(
    _ body: (inout State) throws(SystemCallError) -> sending Result
  ) throws(SystemCallError) -> sending Result {
    try state.withLock { state throws(SystemCallError) in try body(&state) }
  }

  func openDirectory(_ path: String, followingLink: Bool) throws(SystemCallError) -> Int32 {
    try change { $0.open(MemoryFileSystem.root) }
  }

  func status(ofPath path: String, followingLink: Bool) throws(SystemCallError) -> FileStatus {
    try change { $0.status(MemoryFileSystem.root, userID) }
  }

  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    try change { state throws(SystemCallError) in
      if let inode = state.names[name] {
        if mode == .create { throw SystemCallError(number: EEXIST) }
        return state.open(inode)
      }
      if mode == .read { throw SystemCallError(number: ENOENT) }
      try state.write()
      return state.open(state.make(name))
    }
  }

  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    try change { state throws(SystemCallError) in state.status(try state.inode(file), userID) }
  }

  func status(of name: String, in directory: Int32) throws(SystemCallError) -> FileStatus {
    try change { state throws(SystemCallError) in
      guard let inode = state.names[name] else { throw SystemCallError(number: ENOENT) }
      return state.status(inode, userID)
    }
  }

  func names(in directory: Int32) throws(SystemCallError) -> [String] {
    try change { Array($0.names.keys) }
  }

  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    try change { state throws(SystemCallError) in
      let inode = try state.inode(file)
      let offset = state.open[file]?.offset ?? 0
      let bytes = Array((state.nodes[inode]?.bytes ?? []).dropFirst(offset).prefix(count))
      state.open[file]?.offset = offset + bytes.count
      return bytes
    }
  }

  /// At the end: the store writes nothing else.
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try change { state throws(SystemCallError) in
      let inode = try state.inode(file)
      try state.write()
      state.nodes[inode]?.bytes += bytes
      return bytes.count
    }
  }

  func truncate(_ file: Int32) throws(SystemCallError) {
    try change { state throws(SystemCallError) in
      let inode = try state.inode(file)
      try state.write()
      state.nodes[inode]?.bytes = []
    }
  }

  func sync(_ file: Int32) throws(SystemCallError) {}

  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    try change { state throws(SystemCallError) in
      guard let inode = state.names[name] else { throw SystemCallError(number: ENOENT) }
      try state.write()
      _ = state.unlink(newName)
      state.names[name] = nil
      state.names[newName] = inode
    }
  }

  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    try change { state throws(SystemCallError) in
      if !state.unlink(name) { throw SystemCallError(number: ENOENT) }
    }
  }

  func lock(_ file: Int32) throws(SystemCallError) {
    try change { state throws(SystemCallError) in
      let inode = try state.inode(file)
      if let holder = state.nodes[inode]?.lock, holder != file {
        throw SystemCallError(number: EWOULDBLOCK)
      }
      state.nodes[inode]?.lock = file
    }
  }

  func unlock(_ file: Int32) {
    state.withLock { state in
      guard let inode = state.open[file]?.inode, state.nodes[inode]?.lock == file else { return }
      state.nodes[inode]?.lock = nil
    }
  }

  func close(_ file: Int32) {
    unlock(file)
    state.withLock { state in
      guard let inode = state.open.removeValue(forKey: file)?.inode else { return }
      state.forget(inode)
    }
  }
}

/// A file system on which every file has a name, and whose processes all run.
extension StateFileSystem {
  func isRunning(_ process: Int32) -> Bool { true }

  func openUnnamed(in directory: Int32) throws(SystemCallError) -> Int32 {
    throw SystemCallError(number: EOPNOTSUPP)
  }

  func link(_ file: Int32, as name: String, in directory: Int32) throws(SystemCallError) {
    throw SystemCallError(number: EOPNOTSUPP)
  }
}
