// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
public import DaemonSystemd
import Synchronization

/// Keeps bytes on disk so that they are there after a crash, a power cut and a kill in mid-save.
///
///     let store = try StateStore()                       // in $STATE_DIRECTORY
///     let count = try store.load().map { parse($0.bytes) } ?? 0
///     …
///     try store.save(Array("\(count)".utf8))             // returns when it is on disk
///
/// A save leaves the old state or the new one, never a mix and never nothing, wherever it is cut off; once it has
/// returned, the new one. The state before is kept too, and is what `load()` falls back to, saying so, should the disk
/// lose the last. The files are `NAME.0` and `NAME.1`, which take turns, and `NAME.lock`; they are for this user alone
/// (0600).
///
/// One store has a state at a time: while it lives, the next, in this process or another, throws `inUse`.
///
/// Safe to use from any thread. Calls wait for each other and for the disk, and block their thread meanwhile: a hook of
/// a class is on one of the subject's own threads; elsewhere keep it off Swift's cooperative pool. For values there is
/// `CodableStateStore` in `DaemonLifecycleCodable`, for saving when the lifecycle says so ``SavedState``.
///
/// A store keeps three descriptors open. One of them is a file in reserve, without a name, so that a save succeeds when
/// the process has no descriptor left: one at least, and each after it unless other threads take the number that the
/// last one has freed. File systems without such files (O_TMPFILE of open(2)), as NFS, have no reserve.
///
/// It needs a file system whose `fsync` keeps its word: ext4, XFS, btrfs and the like. On a tmpfs nothing outlives the
/// machine, and some network file systems have no locks.
public final class StateStore: Sendable {
  typealias Migration = @Sendable (_ from: UInt32, _ bytes: [UInt8]) throws -> [UInt8]

  /// The path of the directory that the state is in.
  public let directory: String
  private let name: String
  private let version: UInt32
  private let migrate: Migration?
  private let state: Mutex<State>

  private struct State {
    var files: StateFiles
    /// What is on disk has been read without an error, or was written by us: a save destroys nothing that nobody has
    /// seen.
    var isChecked = false
    /// The fingerprint of what the last load or save has left on disk; `nil` when that is not certain. It counts only
    /// where that is checked.
    var saved: Int?
    /// Somebody has asked for a save unless nothing has changed.
    var compares = false
    /// How often `forget` was called: whether it was while the mutex was let go of.
    var epoch: UInt64 = 0

    /// What is on disk is not what it was.
    mutating func forget() {
      isChecked = false
      epoch += 1
    }

    /// Finds the directory and the lock as they should be.
    mutating func prepare() throws(StateError) {
      try files.directory.check()
      // If it was not ours, others may have saved meanwhile.
      if try files.takeLock() { forget() }
    }
  }

  // MARK: Opening

  /// Opens a state in the first directory of `$STATE_DIRECTORY`, which systemd makes for `StateDirectory=`.
  ///
  /// - Parameters:
  ///   - name: What its files' names begin with: letters, digits, '.', '-' and '_', not '.' first, at most 200.
  ///   - version: The version of what the program saves; an earlier one is given to `migrate` when it is loaded.
  ///   - limit: How many bytes a state may have; default 64 MiB.
  ///   - environment: Where to look for the variable.
  ///   - migrate: Brings the bytes of an earlier version up to this one, in memory: the files stay until the next save.
  ///     Called by `load()`, on its thread; what it throws is in that error.
  /// - Throws: `noStateDirectory`, `inUse`, and whatever is wrong with the directory. Files that a crash has left in the
  ///   middle of a save are removed.
  public convenience init(
    name: String = "state", version: UInt32 = 1, limit: Int = 64 << 20,
    environment: ServiceEnvironment = .current,
    migrate: (@Sendable (_ from: UInt32, _ bytes: [UInt8]) throws -> [UInt8])? = nil
  ) throws(StateError) {
    let first: String?
    do throws(SystemdError) { first = try environment.stateDirectories.first } catch {
      throw .noStateDirectory(error)
    }
    guard let first else { throw .noStateDirectory(nil) }
    try self.init(
      directory: first, name: name, version: version, limit: limit, migrate: migrate)
  }

  /// Opens a state in a directory, which must be there.
  ///
  /// The directory must be root's or this user's, and may be writable by everybody only if it is sticky, as /tmp is. A
  /// symbolic link is followed if root or this user has made it.
  ///
  /// - Parameters:
  ///   - directory: Its path.
  ///   - name: The beginning of its files' names: letters, digits, '.', '-' and '_', not '.' first, at most 200.
  ///   - version: The version of what the program saves; an earlier one is given to `migrate` when it is loaded.
  ///   - limit: How many bytes a state may have; default 64 MiB.
  ///   - migrate: Brings the bytes of an earlier version up to this one: see
  ///     ``init(name:version:limit:environment:migrate:)``.
  /// - Throws: `inUse`, and whatever is wrong with the directory.
  public convenience init(
    directory: String, name: String = "state", version: UInt32 = 1,
    limit: Int = 64 << 20,
    migrate: (@Sendable (_ from: UInt32, _ bytes: [UInt8]) throws -> [UInt8])? = nil
  ) throws(StateError) {
    try self.init(
      directory, name, version: version, limit: limit, migrate: migrate,
      files: LinuxFileSystem.shared)
  }

  init(
    _ directory: String, _ name: String, version: UInt32, limit: Int = 64 << 20,
    migrate: Migration? = nil, files: any StateFileSystem, onePiece: Int = 65_536
  ) throws(StateError) {
    try StateStore.check(name)
    self.name = name
    self.version = version
    self.migrate = migrate
    let opened = try StateDirectory(directory, files)
    self.directory = opened.path
    state = Mutex(
      State(files: try StateFiles(name, in: opened, limit: max(0, limit), onePiece: onePiece)))
  }

  private static func check(_ name: String) throws(StateError) {
    let isPlain = name.utf8.allSatisfy {
      $0.isLetter || $0.isDigit || [0x2d, 0x2e, 0x5f].contains($0)
    }
    guard isPlain, name.utf8.first != 0x2e, (1...200).contains(name.utf8.count) else {
      throw .unusable(
        "\"\(name)\" can't name a state: 1 to 200 ASCII letters, digits, '.', '-' and '_', without a '.' at the start."
      )
    }
  }

  // MARK: Load

  /// The last state that was saved; `nil` when none ever was.
  ///
  /// Look at ``StoredState/broken``: if a file that should have been whole is not, this may be the state before the
  /// last.
  ///
  /// - Throws: `allBroken`, `newerVersion`, `newerFormat`, `notMigrated`, `unusable`, `notAFile`, `tooLong`, or a failed
  ///   call. Nothing is changed then, and ``save(_:)`` refuses with the same error until it is mended or set aside.
  public func load() throws(StateError) -> StoredState? {
    let (found, epoch) = try state.withLock { state throws(StateError) in
      do throws(StateError) { try state.prepare() } catch {
        // Where nobody can write, nothing has to be locked to be read.
        guard case .readOnly = error else { throw error }
      }
      do throws(StateError) {
        let found = try state.files.load()
        state.saved = found.flatMap(fingerprintIfCurrent)
        return (found, state.epoch)
      } catch {
        state.forget()
        throw error
      }
    }
    let stored: StoredState?
    // Without the mutex, since the migration is the user's.
    do throws(StateError) {
      stored = try found.map { found throws(StateError) in try current(found) }
    } catch {
      state.withLock { $0.forget() }
      throw error
    }
    state.withLock { if $0.epoch == epoch { $0.isChecked = true } }
    return stored
  }

  /// `nil` where the same bytes are worth a save: a file beside them is broken, or they have an earlier version.
  private func fingerprintIfCurrent(_ found: StateFiles.Found) -> Int? {
    guard found.broken.isEmpty, found.record.version == version else { return nil }
    return StateStore.fingerprint(found.record.bytes)
  }

  private func current(_ found: StateFiles.Found) throws(StateError) -> StoredState {
    let record = found.record
    let path = "\(directory)/\(name).\(found.slot)"
    guard record.version <= version else {
      throw .newerVersion(path, found: record.version, known: version)
    }
    var bytes = record.bytes
    if record.version < version {
      func failure(_ reason: String) -> StateError {
        .notMigrated(path, from: record.version, to: version, reason: reason)
      }
      guard let migrate else { throw failure("The store has no migration.") }
      do { bytes = try migrate(record.version, bytes) } catch { throw failure("\(error)") }
    }
    return StoredState(
      bytes: bytes, version: record.version, generation: record.generation, path: path,
      broken: found.broken)
  }

  // MARK: Save

  /// Replaces the state, and returns when the new one is on disk.
  ///
  /// A save before any load loads first, so that nothing is overwritten that could not have been read.
  ///
  /// - Parameter bytes: The new state.
  /// - Throws: What `load()` throws in that case; `noSpace`, `readOnly`, `tooLong`, `unusable`, `inUse` when the
  ///   lock was removed and another has it, or a failed call. The old state is still there. Only when the last step fails,
  ///   making the file's name durable, the new one may be what the next `load()` finds.
  public func save(_ bytes: [UInt8]) throws(StateError) {
    _ = try save(bytes, unlessUnchanged: false)
  }

  /// Saves bytes that are not on disk already.
  ///
  /// They are compared by a keyed hash of 64 bits, made anew in each process, with what was last saved or loaded here.
  /// Bytes that `save(_:)` has saved before the first call are saved once more: who never asks pays nothing for it.
  ///
  /// - Parameter bytes: The new state.
  /// - Returns: Whether it saved.
  /// - Throws: As ``save(_:)``.
  @discardableResult
  public func saveIfChanged(_ bytes: [UInt8]) throws(StateError) -> Bool {
    try save(bytes, unlessUnchanged: true)
  }

  private func save(_ bytes: [UInt8], unlessUnchanged: Bool) throws(StateError) -> Bool {
    // Of no use to those who never ask whether something has changed, and for megabytes not for nothing.
    let compares = state.withLock { state in
      state.compares = state.compares || unlessUnchanged
      return state.compares
    }
    let fingerprint = compares ? StateStore.fingerprint(bytes) : nil
    while true {
      let didSave = try state.withLock { state throws(StateError) -> Bool? in
        try state.prepare()
        guard state.isChecked else { return nil }
        if unlessUnchanged, let fingerprint, state.saved == fingerprint, state.files.isInPlace {
          return false
        }
        state.saved = nil
        try state.files.save(bytes, version: version)
        state.saved = fingerprint
        return true
      }
      if let didSave { return didSave }
      try loadForSave()
    }
  }

  /// What can't be read can't be replaced: so where no file can be opened, the reserve is given up for reading.
  private func loadForSave() throws(StateError) {
    do throws(StateError) { _ = try load() } catch {
      guard case .system(_, let errno) = error, SystemdError.isShortage(errno),
        state.withLock({ $0.files.releaseSpare() })
      else { throw error }
      _ = try load()
    }
  }

  // MARK: Closing

  /// Lets go of the lock, so that another store can have the state; from now on every call throws `unusable`.
  ///
  /// A store that goes away does so too. This is for when it matters when: an observer may be held for a moment longer
  /// by the delivery that it has just heard.
  public func close() { state.withLock { $0.files.close() } }

  // MARK: Setting aside

  /// Renames the files of the state to `NAME.0.bad` and the like, so that the program can begin again and somebody can
  /// examine them. Earlier ones are not overwritten.
  ///
  /// For a state that can't be loaded:
  ///
  ///     do { state = try store.load() } catch {
  ///       log("\(error) It is kept as \(try store.setAside()).")
  ///     }
  ///
  /// - Returns: The paths that they have now.
  /// - Throws: `inUse`, `unusable`, or a failed call.
  public func setAside() throws(StateError) -> [String] {
    try state.withLock { state throws(StateError) in
      try state.prepare()
      state.forget()
      return try state.files.setAside()
    }
  }

  /// A keyed hash, so that nobody who has a say in the state can make two that look alike.
  private static func fingerprint(_ bytes: [UInt8]) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes.count)
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }
}
