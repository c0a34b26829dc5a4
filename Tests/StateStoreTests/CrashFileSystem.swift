// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

@testable import DaemonLifecycleState

/// What a disk holds: the files of one directory.
struct DiskImage: Hashable {
  var files: [String: [UInt8]] = [:]
}

/// A file system as bad as it may be: what is not synced may be lost or torn, names may come in any order, and any call
/// may be the last or fail.
///
/// A file that was written to and not synced may have, after a crash, any length, and any of its sectors may be empty.
/// A name that was changed and not synced may lead to what it led to before or to any of what it has led to since, and
/// each name for itself: so renames may be halved, lost and reordered. After a sync that failed, all of that stays
/// possible, and a later one that succeeds does not help: the kernel has called the pages clean.
final class CrashFileSystem: StateFileSystem {
  enum Fault: Hashable {
    /// The machine stops before the call.
    case crash
    case error(Int32)
    /// The call fails after it has done its work, as over a network.
    case errorAfterEffect(Int32)
    /// Only a part is written.
    case short
    /// A part is written, and the next write fails.
    case shortThenError(Int32)
  }

  /// A sync that says it worked, and did nothing.
  enum Lie { case fileSync, directorySync }

  static let sector = 16

  private struct Node {
    var bytes: [UInt8] = []
    /// What it may be after a crash, if nothing is written to it any more.
    var durable: Set<[UInt8]> = [[]]
    var isDirty = false
    var links = 0

    /// What it may be after a crash now.
    var candidates: Set<[UInt8]> {
      guard isDirty else { return durable }
      var all = durable
      for length in 0...bytes.count { all.insert(Array(bytes.prefix(length))) }
      let sectors = (bytes.count + sector - 1) / sector
      // More sectors than this would take long, and show nothing else.
      for lost in 0..<(1 << min(sectors, 6)) {
        var torn = bytes
        for index in torn.indices where lost >> (index / sector) & 1 == 1 { torn[index] = 0 }
        all.insert(torn)
      }
      return all
    }
  }

  private struct Name {
    var inode: UInt64?
    /// What it may lead to after a crash, if nothing is done to it any more.
    var durable: Set<UInt64?> = [nil]
    /// What it has led to since the last sync.
    var pending: Set<UInt64?> = []
  }

  private struct State {
    var nodes: [UInt64: Node] = [:]
    var names: [String: Name] = [:]
    var open: [Int32: (inode: UInt64, offset: Int)] = [:]
    var lastNumber: UInt64 = 1
    /// The descriptor that has each locked inode.
    var locks: [UInt64: Int32] = [:]
    /// The error of whatever would write.
    var failure: Int32?
    var calls = 0
    var fault: (index: Int, fault: Fault)?
    var nextWriteFails: Int32?
    var hasCrashed = false
    /// No further descriptor is to be had, after so many more.
    var descriptorsLeft = Int.max
    var trace: [String] = []

    func write() throws(SystemCallError) {
      if let failure { throw SystemCallError(number: failure) }
    }

    mutating func make(_ name: String) -> UInt64 {
      lastNumber += 1
      nodes[lastNumber] = Node()
      lead(name, to: lastNumber)
      return lastNumber
    }

    mutating func lead(_ name: String, to inode: UInt64?) {
      var entry = names[name] ?? Name()
      if let old = entry.inode { nodes[old]?.links -= 1 }
      if let inode { nodes[inode]?.links += 1 }
      entry.inode = inode
      entry.pending.insert(inode)
      names[name] = entry
    }

    /// Unsynced names that reached the disk, or not.
    mutating func syncNames(isCertain: Bool) {
      for (name, entry) in names where !entry.pending.isEmpty {
        names[name]?.durable = isCertain ? [entry.inode] : entry.durable.union(entry.pending)
        names[name]?.pending = []
      }
    }

    mutating func sync(_ inode: UInt64, isCertain: Bool) {
      guard let node = nodes[inode], node.isDirty else { return }
      nodes[inode]?.durable = isCertain ? [node.bytes] : node.candidates
      nodes[inode]?.isDirty = false
    }
  }

  private static let root: UInt64 = 1
  private let state: Mutex<State>
  private let lies: Set<Lie>
  let userID: UInt32 = 1000

  init(_ image: DiskImage = DiskImage(), lies: Set<Lie> = []) {
    var state = State()
    for (name, bytes) in image.files {
      state.lastNumber += 1
      state.nodes[state.lastNumber] = Node(bytes: bytes, durable: [bytes], links: 1)
      state.names[name] = Name(inode: state.lastNumber, durable: [state.lastNumber])
    }
    self.state = Mutex(state)
    self.lies = lies
  }

  // MARK: For the test

  func fail(at index: Int, _ fault: Fault) {
    state.withLock { $0.fault = (index, fault) }
  }
  /// The process may open so many files more, however many it closes.
  func limitDescriptors(to count: Int) { state.withLock { $0.descriptorsLeft = count } }
  func recover() {
    state.withLock { state in
      state.fault = nil
      state.descriptorsLeft = .max
    }
  }

  /// It was only the process that stopped: the kernel has closed its files and has what it wrote.
  func restartProcess() {
    state.withLock { state in
      state.fault = nil
      state.descriptorsLeft = .max
      state.hasCrashed = false
      state.open = [:]
      state.locks = [:]
    }
  }

  /// While it is not `nil`, whatever would write fails with this `errno` value.
  var failure: Int32? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  /// Gives the directory these files, as another program would: those that are there keep their inodes.
  func replace(_ files: [String: [UInt8]]) {
    state.withLock { state in
      for (name, entry) in state.names where entry.inode != nil && files[name] == nil {
        state.lead(name, to: nil)
      }
      for (name, bytes) in files {
        let inode = state.names[name]?.inode ?? state.make(name)
        state.nodes[inode]?.bytes = bytes
      }
    }
  }

  var calls: Int { state.withLock { $0.calls } }
  var trace: [String] { state.withLock { $0.trace } }
  var isFaultDone: Bool {
    state.withLock { state in state.fault.map { $0.index < state.calls } ?? false }
  }

  /// The files as the process sees them.
  var visible: DiskImage {
    state.withLock { state in
      var image = DiskImage()
      for (name, entry) in state.names {
        if let inode = entry.inode { image.files[name] = state.nodes[inode]?.bytes }
      }
      return image
    }
  }

  /// Everything that the disk may hold if the power goes now; calls `body` with each once, and returns how many ways
  /// there were to get there.
  func afterPowerCut() -> (images: Set<DiskImage>, ways: Int) {
    state.withLock { state in
      var images: Set<DiskImage> = [DiskImage()]
      var ways = 1
      for (name, entry) in state.names {
        var contents: [[UInt8]?] = []
        for inode in entry.durable.union(entry.pending) {
          guard let inode else {
            contents.append(nil)
            continue
          }
          contents += (state.nodes[inode]?.candidates ?? []).map { $0 }
        }
        ways *= contents.count
        var next: Set<DiskImage> = []
        for image in images {
          for content in contents {
            var image = image
            image.files[name] = content
            next.insert(image)
          }
        }
        images = next
      }
      return (images, ways)
    }
  }

  // MARK: Calls

  /// A call: counted, and failed if it is its turn. `effect` is told how the call goes.
  private func call<Result>(
    _ name: String, _ effect: (inout State, Fault?) throws(SystemCallError) -> sending Result
  ) throws(SystemCallError) -> sending Result {
    try state.withLock { state throws(SystemCallError) in
      if state.hasCrashed { throw SystemCallError(number: EIO) }
      let index = state.calls
      state.calls += 1
      state.trace.append(name)
      var fault: Fault?
      if let planned = state.fault, planned.index == index { fault = planned.fault }
      switch fault {
      case .crash:
        state.hasCrashed = true
        throw SystemCallError(number: EIO)
      case .error(let number) where name != "sync":
        throw SystemCallError(number: number)
      default: break
      }
      let result = try effect(&state, fault)
      if case .errorAfterEffect(let number) = fault { throw SystemCallError(number: number) }
      return result
    }
  }

  private static func status(_ inode: UInt64, _ state: State) -> FileStatus {
    FileStatus(
      identity: FileIdentity(device: 1, inode: inode),
      kind: inode == root ? .directory : .file, owner: 1000,
      links: state.nodes[inode]?.links ?? 2, size: state.nodes[inode]?.bytes.count ?? 0)
  }

  /// The kernel looks for one before it looks for the file.
  private static func needDescriptor(_ state: State) throws(SystemCallError) {
    if state.descriptorsLeft <= 0 { throw SystemCallError(number: EMFILE) }
  }

  private static func open(
    _ inode: UInt64, _ state: inout State
  ) throws(SystemCallError) -> Int32 {
    try needDescriptor(state)
    state.descriptorsLeft -= 1
    state.lastNumber += 1
    let descriptor = Int32(truncatingIfNeeded: state.lastNumber)
    state.open[descriptor] = (inode, 0)
    return descriptor
  }

  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    try call("open \(mode)") { state, _ throws(SystemCallError) in
      try Self.needDescriptor(state)
      if directory == AT_FDCWD { return try Self.open(Self.root, &state) }
      if let inode = state.names[name]?.inode {
        if mode == .create { throw SystemCallError(number: EEXIST) }
        return try Self.open(inode, &state)
      }
      if mode == .read { throw SystemCallError(number: ENOENT) }
      try state.write()
      return try Self.open(state.make(name), &state)
    }
  }

  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    try call("fstat") { state, _ throws(SystemCallError) in
      guard let inode = state.open[file]?.inode else { throw SystemCallError(number: EBADF) }
      return Self.status(inode, state)
    }
  }

  func status(
    of name: String, in directory: Int32, followingLink: Bool
  ) throws(SystemCallError) -> FileStatus {
    try call("stat") { state, _ throws(SystemCallError) in
      if directory == AT_FDCWD { return Self.status(Self.root, state) }
      guard let inode = state.names[name]?.inode else { throw SystemCallError(number: ENOENT) }
      return Self.status(inode, state)
    }
  }

  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    try call("read") { state, fault throws(SystemCallError) in
      guard let (inode, offset) = state.open[file] else { throw SystemCallError(number: EBADF) }
      var bytes = Array((state.nodes[inode]?.bytes ?? []).dropFirst(offset).prefix(count))
      if fault == .short { bytes = Array(bytes.prefix(max(1, bytes.count / 2))) }
      state.open[file]?.offset += bytes.count
      return bytes
    }
  }

  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try call("write") { state, fault throws(SystemCallError) in
      if let number = state.nextWriteFails {
        state.nextWriteFails = nil
        throw SystemCallError(number: number)
      }
      guard let inode = state.open[file]?.inode else { throw SystemCallError(number: EBADF) }
      try state.write()
      var count = bytes.count
      if fault == .short { count = (count + 1) / 2 }
      if case .shortThenError(let number) = fault {
        count = (count + 1) / 2
        state.nextWriteFails = number
      }
      state.nodes[inode]?.bytes += bytes.prefix(count)
      state.nodes[inode]?.isDirty = true
      return count
    }
  }

  func sync(_ file: Int32) throws(SystemCallError) {
    try call("sync") { state, fault throws(SystemCallError) in
      guard let inode = state.open[file]?.inode else { throw SystemCallError(number: EBADF) }
      var failure: Int32?
      if case .error(let number) = fault { failure = number }
      // Interrupted, it has not tried yet.
      if failure == EINTR { throw SystemCallError(number: EINTR) }
      if inode == Self.root {
        if !lies.contains(.directorySync) { state.syncNames(isCertain: failure == nil) }
      } else if !lies.contains(.fileSync) {
        state.sync(inode, isCertain: failure == nil)
      }
      if let failure { throw SystemCallError(number: failure) }
    }
  }

  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    try call("rename") { state, _ throws(SystemCallError) in
      guard let inode = state.names[name]?.inode else { throw SystemCallError(number: ENOENT) }
      try state.write()
      state.lead(newName, to: inode)
      state.lead(name, to: nil)
    }
  }

  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    try call("remove") { state, _ throws(SystemCallError) in
      guard state.names[name]?.inode != nil else { throw SystemCallError(number: ENOENT) }
      state.lead(name, to: nil)
    }
  }

  func lock(_ file: Int32) throws(SystemCallError) {
    try call("lock") { state, _ throws(SystemCallError) in
      guard let inode = state.open[file]?.inode else { throw SystemCallError(number: EBADF) }
      if let holder = state.locks[inode], holder != file {
        throw SystemCallError(number: EWOULDBLOCK)
      }
      state.locks[inode] = file
    }
  }

  func unlock(_ file: Int32) {
    state.withLock { state in
      guard let inode = state.open[file]?.inode, state.locks[inode] == file else { return }
      state.locks[inode] = nil
    }
  }

  func close(_ file: Int32) {
    unlock(file)
    state.withLock { $0.open[file] = nil }
  }
}
