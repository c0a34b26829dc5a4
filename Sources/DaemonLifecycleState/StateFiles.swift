// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The files of one state in its directory, for one caller at a time. It is not `Sendable`: a store keeps it in its
/// mutex.
///
/// There are two, `NAME.0` and `NAME.1`, which alternate. A save writes `.NAME.new`, syncs it, renames it over the file
/// that does *not* hold the last durable state, and syncs the directory. No call of a save names the file of the last
/// durable state, so that file is intact until the save has returned, whatever happens to the others. And the file that
/// a rename puts in place was synced before, so it is intact under any name.
struct StateFiles {
  private(set) var directory: StateDirectory
  let name: String
  /// The version of the program's format, in which it saves.
  let version: UInt32
  let limit: Int
  private var isClosed = false
  /// The lock; `nil` on a file system that was read-only when it was requested.
  private(set) var lock: StateLock?
  /// The slot with the last state that is known to be on disk; `nil` when neither has one, or before a load.
  private(set) var durableSlot: Int?
  /// The generation of the newest file at the last load, or of the last save that was begun since.
  private var lastGeneration: UInt64 = 0
  /// The slot where the newest state is, or may be: a file that can't be read, or is too new, may be the newest.
  private var newestSlot: Int?
  /// The file that the last save put in place, or the last load read, and its header. `nil` if even the same bytes are
  /// to be saved: they have an earlier version, the file beside them is broken, or a save has failed since.
  private var inPlace: (file: FileIdentity, header: [UInt8])?
  /// The file that the next save writes, empty; `nil` where it could not be made.
  ///
  /// It is open in advance, so that a process without a descriptor can save. A descriptor that is closed to make room is
  /// no reserve: a thread that accepts connections takes the number before openat(2) can.
  private var prepared: StateHandle?

  init(
    _ name: String, in directory: StateDirectory, version: UInt32, limit: Int
  ) throws(StateError) {
    self.name = name
    self.directory = directory
    self.version = version
    self.limit = limit
    do throws(StateError) { _ = try takeLock() } catch {
      // Loading is possible, and a save takes the lock first.
      guard case .readOnly = error else { throw error }
    }
  }

  private var folder: StateHandle { directory.handle }

  func slotName(_ slot: Int) -> String { "\(name).\(slot)" }

  // MARK: The lock

  /// Takes the lock if it is not held in the directory that the path leads to. Returns true if it was not: others may
  /// have saved meanwhile.
  mutating func takeLock() throws(StateError) -> Bool {
    if isClosed {
      throw .unusable("The store of the state in \(directory.path) was closed: open another.")
    }
    directory = try directory.current()
    if let lock {
      do throws(SystemCallError) {
        if try lock.isStill(in: directory) { return false }
      } catch { throw .failed("check the lock of the state in \(directory.path)", error) }
    }
    lock = try StateLock("\(name).lock", in: directory)
    prepareFile()
    return true
  }

  mutating func close() {
    isClosed = true
    lock = nil
    prepared = nil
  }

  // MARK: The new file

  private var temporaryName: String { ".\(name).new" }

  /// Makes the file of the next save, unless there is one. If that fails, the save tries again.
  private mutating func prepareFile() { if prepared == nil { prepared = try? newFile() } }

  private func newFile() throws(SystemCallError) -> StateHandle {
    do throws(SystemCallError) { return try folder.open(temporaryName, .create) } catch {
      guard error.number == EEXIST else { throw error }
    }
    // It was left by a save that was killed or has failed, perhaps in another process.
    folder.remove(temporaryName)
    return try folder.open(temporaryName, .create)
  }

  /// Whether the file that was prepared is still there, under its name.
  private func isNamed(_ file: StateHandle) -> Bool {
    file.isOwn && (try? folder.status(of: temporaryName))?.identity == file.opened.identity
  }

  // MARK: Load

  /// Frees the descriptor of the file that was prepared. Returns whether there was one.
  mutating func releasePrepared() -> Bool { prepared.take() != nil }

  /// Loads the newest intact state and makes it durable; returns `nil` when there are no files.
  mutating func load() throws(StateError) -> StoredState? {
    durableSlot = nil
    defer { prepareFile() }
    var newest: (slot: Int, record: StateRecord)?
    var broken: [String] = []
    for slot in 0...1 {
      let path = directory.path(of: slotName(slot))
      newestSlot = slot
      switch try read(slot) {
      case nil: continue
      case .broken(let damage): broken.append("\(path) \(damage)")
      case .newerFormat(let format): throw .newerFormat(path: path, found: format)
      case .whole(let record):
        if newest.map({ record.isNewer(than: $0.record) }) ?? true {
          newest = (slot, record)
        }
      }
    }
    newestSlot = newest?.slot
    guard let newest else {
      if broken.isEmpty { return nil }
      throw .allBroken(broken)
    }
    let isCurrent = broken.isEmpty && newest.record.version == version
    try makeDurable(newest.slot, isCurrent ? newest.record.header : nil)
    lastGeneration = newest.record.generation
    return StoredState(
      bytes: newest.record.bytes, version: newest.record.version, generation: lastGeneration,
      path: directory.path(of: slotName(newest.slot)), broken: broken)
  }

  /// The file of an intact state that this version of the program knows; `nil` if there is none.
  func pathOfKnownState() -> String? {
    for slot in 0...1 {
      if case .whole(let record)? = try? read(slot), record.version <= version {
        return directory.path(of: slotName(slot))
      }
    }
    return nil
  }

  /// - Parameter isSecond: Whether this is the second attempt. A disk, or the network before it, may fail for a moment,
  ///   and a readable file must not be overwritten: so only a file that can't be read twice is broken. A file that
  ///   can't be opened is an error: that happens to whole disks.
  private func read(
    _ slot: Int, isSecond: Bool = false
  ) throws(StateError) -> StateRecord.Reading? {
    let name = slotName(slot)
    let path = directory.path(of: name)
    do {
      let file: StateHandle
      do throws(SystemCallError) { file = try folder.open(name, .read) } catch {
        switch error.number {
        case ENOENT: return nil
        case ELOOP, ENXIO: throw StateError.notAFile(path: path)
        default: throw StateError.failed("read \(path)", error)
        }
      }
      let status = file.opened
      guard status.kind == .file else { throw StateError.notAFile(path: path) }
      guard status.owner == folder.files.userID else {
        throw StateError.foreignOwner(path, uid: status.owner)
      }
      return try read(file, size: status.size, path)
    } catch let error as SystemCallError where error.number == EIO {
      return isSecond ? .broken("can't be read from the disk") : try read(slot, isSecond: true)
    } catch { throw .cause("read \(path)", error) }
  }

  private func read(
    _ file: StateHandle, size: Int, _ path: String
  ) throws -> StateRecord.Reading {
    let header = try file.read(StateRecord.headerSize)
    // A file that is not a state may be of any size: its beginning shows that.
    guard let length = StateRecord.length(inHeader: header) else {
      return StateRecord.read(header)
    }
    // Neither a header nor a file can cause a read of more than the limit.
    let payload = max(0, size - header.count)
    guard payload <= limit else {
      if length != UInt64(payload) { return .wrongLength(size, payload: length) }
      throw StateError.tooLong(path: path, count: length, limit: limit)
    }
    return StateRecord.read(header + (try file.read(payload + 1)))
  }

  /// Syncs a file that was loaded, and its name. A process that was killed before it synced the name, or a tool that
  /// copied the file, may have left them only in memory. A state that was loaded once must survive a power cut.
  private mutating func makeDurable(_ slot: Int, _ header: [UInt8]?) throws(StateError) {
    let name = slotName(slot)
    do throws(SystemCallError) {
      let file = try folder.open(name, .read)
      inPlace = header.map { (file.opened.identity, $0) }
      try file.sync()
      try folder.syncNames()
    } catch {
      // On a read-only file system nothing is to be written.
      guard error.number == EROFS || error.number == EINVAL else {
        throw .failed("make \(directory.path(of: name)) durable", error)
      }
    }
    durableSlot = slot
  }

  // MARK: Save

  /// Whether these bytes are on disk, in the file that was loaded or saved last; false if that can't be read.
  func areSaved(_ bytes: [UInt8]) -> Bool {
    guard let durableSlot, let inPlace,
      let file = try? folder.open(slotName(durableSlot), .read),
      file.opened.identity == inPlace.file,
      file.opened.size == StateRecord.headerSize + bytes.count,
      (try? file.read(StateRecord.headerSize)) == inPlace.header
    else { return false }
    // In pieces, so that a large state is not in memory twice.
    return stride(from: 0, to: bytes.count, by: 65536).allSatisfy { start in
      let piece = Array(bytes[start..<min(start + 65536, bytes.count)])
      return (try? file.read(piece.count)) == piece
    }
  }

  /// Saves, and returns when the state is on disk. The caller has the lock and has loaded.
  mutating func save(_ bytes: [UInt8]) throws(StateError) {
    let purpose = "save the state in \(directory.path)"
    guard bytes.count <= limit else {
      throw .tooLong(path: directory.path, count: UInt64(bytes.count), limit: limit)
    }
    inPlace = nil
    lastGeneration &+= 1
    let record = StateRecord(version: version, generation: lastGeneration, bytes: bytes)
    let slot = durableSlot == 0 ? 1 : 0
    do throws(SystemCallError) {
      let header = record.header
      let file = try write(header, bytes)
      try folder.rename(temporaryName, to: slotName(slot))
      // At once: the descriptor of the file that was written is free now, but under load not for long.
      prepareFile()
      try folder.syncNames()
      inPlace = (file, header)
    } catch {
      // The written file takes room.
      if prepared == nil { folder.remove(temporaryName) }
      prepareFile()
      switch error.number {
      case EISDIR, ENOTEMPTY: throw .notAFile(path: directory.path(of: slotName(slot)))
      case EEXIST: throw .notAFile(path: directory.path(of: temporaryName))
      default: throw .failed(purpose, error)
      }
    }
    durableSlot = slot
  }

  /// Writes and syncs the file that was prepared, or a new one.
  private mutating func write(
    _ header: [UInt8], _ bytes: [UInt8]
  ) throws(SystemCallError) -> FileIdentity {
    let file: StateHandle
    if let ready = prepared.take(), isNamed(ready) { file = ready } else { file = try newFile() }
    try file.write(header)
    try file.write(bytes)
    // Called once: after an error the kernel may mark pages as clean that were never written, so the next save uses a
    // new file.
    try file.sync()
    // Otherwise the file that other code has under this number may have got the bytes.
    guard file.isOwn else { throw SystemCallError(number: EBADF) }
    return file.opened.identity
  }

  // MARK: Setting aside

  /// Renames both files, so that the next load finds none, and returns the new paths. The caller has the lock.
  mutating func setAside() throws(StateError) -> [String] {
    // The newest is renamed last: after a crash in between, the older one must not be loaded.
    _ = try? load()
    let newest = newestSlot ?? 1
    var paths: [String] = []
    do throws(SystemCallError) {
      for slot in [1 - newest, newest] where try folder.status(of: slotName(slot)) != nil {
        let name = try freeName(for: slotName(slot))
        try folder.rename(slotName(slot), to: name)
        try folder.syncNames()
        paths.append(directory.path(of: name))
      }
    } catch { throw .failed("set the state in \(directory.path) aside", error) }
    return paths
  }

  /// Returns an unused name for a file that is set aside. Only this type gives such names, under the lock.
  private func freeName(for name: String) throws(SystemCallError) -> String {
    func candidate(_ number: Int) -> String {
      number == 1 ? "\(name).bad" : "\(name).bad.\(number)"
    }
    // A binary search between a used name and a free one, since there may be thousands.
    var (used, free) = (0, 1)
    while try folder.status(of: candidate(free)) != nil { (used, free) = (free, free * 2) }
    while free - used > 1 {
      let middle = (used + free) / 2
      if try folder.status(of: candidate(middle)) == nil { free = middle } else { used = middle }
    }
    return candidate(free)
  }
}
