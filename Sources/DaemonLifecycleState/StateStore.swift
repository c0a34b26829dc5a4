// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd
import Synchronization

/// A store that keeps bytes on disk through crashes, power cuts and kills in the middle of a save.
///
/// ```swift
/// let store = try StateStore()            // in $STATE_DIRECTORY
/// let stored = try store.loadOrSetAside { log($0) }
/// var count = stored.map { parse($0.bytes) } ?? 0
/// …
/// try store.save(Array("\(count)".utf8))  // returns when it is on disk
/// ```
///
/// A save that is interrupted leaves the old state or the new one, never a mix and never nothing; once it has returned,
/// the new one is on disk. The previous state is kept too: `load()` falls back to it, and reports that, if the last one
/// is damaged. The files are `NAME.0` and `NAME.1`, which alternate, `.NAME.new` and `NAME.lock`. Only this user can
/// access them (mode 0600).
///
/// Only one store at a time can have a state. Until that store is closed or deallocated, opening another, in this
/// process or another, throws `inUse`.
///
/// Safe to use from any thread. Calls wait for each other and for the disk: keep them off Swift's cooperative pool. In a
/// class's hook, which has a thread of the subject, they are fine. `CodableStateStore` in `DaemonLifecycleCodable` stores
/// values, and ``StateSaver`` saves on ShouldSaveState.
///
/// A store keeps three descriptors open, among them the file of the next save: at least one save succeeds when the
/// process has no descriptor left.
///
/// It requires a file system with a reliable `fsync`, such as ext4, XFS and btrfs. A tmpfs loses its files when the
/// machine stops, and some network file systems have no locks.
public final class StateStore: Sendable {
  /// The path of the directory that the state is in.
  public let directory: String
  let name: String
  private let state: Mutex<State>

  private struct State {
    var files: StateFiles
    /// Whether the state on disk was read without an error, or was written by this store, so that a save destroys
    /// nothing unread.
    var isChecked = false

    /// Verifies the directory and the lock before a call.
    mutating func prepare() throws(StateError) {
      // If the lock was not held, others may have saved meanwhile.
      if try files.takeLock() { isChecked = false }
    }
  }

  // MARK: Opening

  /// Opens a state in the first directory of `$STATE_DIRECTORY`, which systemd creates for `StateDirectory=`.
  ///
  /// - Parameters:
  ///   - name: The beginning of the files' names: letters, digits, '.', '-' and '_', not '.' first, at most 200
  ///     characters. Default `state`.
  ///   - version: The version of the program's format; a loaded state may have an older one. Default 1.
  ///   - limit: The largest size of a state, in bytes. Default 64 MiB.
  ///   - environment: The environment to read the variable from. Default: this process's.
  /// - Throws: `noStateDirectory`, `inUse`, or an error about the directory.
  public convenience init(
    name: String = "state", version: UInt32 = 1, limit: Int = 64 << 20,
    environment: ServiceEnvironment = .current
  ) throws(StateError) {
    let first: String?
    do throws(SystemdError) {
      first = try environment.stateDirectories.first
    } catch {
      throw .noStateDirectory(error)
    }
    guard let first else { throw .noStateDirectory(nil) }
    try self.init(directory: first, name: name, version: version, limit: limit)
  }

  /// Opens a state in an existing directory.
  ///
  /// Root or this user must own the directory. It may be writable by every user only if it is sticky, as /tmp is. A
  /// symbolic link is followed if root or this user owns it.
  ///
  /// The other parameters are those of ``init(name:version:limit:environment:)``.
  ///
  /// - Throws: `inUse`, or an error about the directory.
  public convenience init(
    directory: String, name: String = "state", version: UInt32 = 1, limit: Int = 64 << 20
  ) throws(StateError) {
    try self.init(
      directory, name, version: version, limit: limit, files: LinuxFileSystem.shared)
  }

  init(
    _ directory: String, _ name: String, version: UInt32, limit: Int = 64 << 20,
    files: any StateFileSystem
  ) throws(StateError) {
    try StateStore.check(name)
    let opened = try StateDirectory(directory, files)
    (self.directory, self.name) = (opened.path, name)
    state = Mutex(
      State(files: try StateFiles(name, in: opened, version: version, limit: max(0, limit))))
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

  /// Loads the newest state that is intact; returns `nil` when there is none.
  ///
  /// Check ``StoredState/broken``: if a file is damaged, this may be the state before the last. Check
  /// ``StoredState/version`` if the program's format has had other versions.
  ///
  /// - Throws: `allBroken`, `newerVersion`, `newerFormat`, `unusable`, `notAFile`, `tooLong`, or a failed call. Nothing
  ///   is changed then, and ``save(_:)`` throws the same error until the files are repaired or set aside.
  public func load() throws(StateError) -> StoredState? {
    try state.withLock { state throws(StateError) in try load(&state) }
  }

  private func load(_ state: inout State) throws(StateError) -> StoredState? {
    do throws(StateError) { try state.prepare() } catch {
      // On a read-only file system no lock is needed to read.
      guard case .readOnly = error else { throw error }
    }
    state.isChecked = false
    let found = try state.files.load()
    if let found, found.version > state.files.version {
      throw .newerVersion(
        path: found.path, found: found.version, known: state.files.version,
        before: state.files.pathOfKnownState())
    }
    state.isChecked = true
    return found
  }

  /// Loads the last state, or the one before it if the last is damaged. If neither is intact, sets the files aside and
  /// returns `nil`. Calls `warn` with a sentence about each damaged file.
  ///
  /// Other errors, which another attempt may resolve, are thrown: a state that is in use, too new, owned by another
  /// user or temporarily unreadable is not changed.
  ///
  /// - Throws: The errors of ``load()``.
  public func loadOrSetAside(_ warn: (String) -> Void) throws(StateError) -> StoredState? {
    try loadOrSetAside(warn) { () throws(StateError) in try load().map { ($0, $0) } }
  }

  /// - Parameter load: Returns the state, and what it means.
  package func loadOrSetAside<Value>(
    _ warn: (String) -> Void, _ load: () throws(StateError) -> (StoredState, Value)?
  ) throws(StateError) -> Value? {
    do throws(StateError) {
      guard let (stored, value) = try load() else { return nil }
      for file in stored.broken { warn("\(file). The state before it is used.") }
      return value
    } catch {
      switch error {
      case .allBroken, .undecodable, .notAFile: break
      default: throw error
      }
      let paths = try setAside()
      warn("\(error) It is kept as \(paths.joined(separator: ", ")).")
      return nil
    }
  }

  // MARK: Save

  /// Replaces the state, and returns when the new one is on disk.
  ///
  /// A store that has not loaded does so first, so that it does not overwrite a state that could not be read.
  ///
  /// - Parameter bytes: The new state.
  /// - Throws: The errors of `load()` in that case; `noSpace`, `readOnly`, `tooLong`, `unusable`, `inUse` when the lock
  ///   file was removed and another store has the lock, or a failed call. The old state is kept. If only the last step
  ///   fails (fsync of the directory), the next `load()` may return either state.
  public func save(_ bytes: [UInt8]) throws(StateError) {
    _ = try save(bytes, unlessUnchanged: false)
  }

  /// Saves bytes unless they are on disk already.
  ///
  /// They are compared with the file that this store last saved or loaded.
  ///
  /// - Parameter bytes: The new state.
  /// - Returns: Whether it saved.
  /// - Throws: The errors of ``save(_:)``.
  @discardableResult
  public func saveIfChanged(_ bytes: [UInt8]) throws(StateError) -> Bool {
    try save(bytes, unlessUnchanged: true)
  }

  private func save(_ bytes: [UInt8], unlessUnchanged: Bool) throws(StateError) -> Bool {
    try state.withLock { state throws(StateError) in
      try state.prepare()
      if !state.isChecked { try loadForSave(&state) }
      if unlessUnchanged, state.files.areSaved(bytes) { return false }
      try state.files.save(bytes)
      return true
    }
  }

  /// Loads before a save. A state that can't be read is not replaced, so when there is no descriptor for reading, that
  /// of the prepared file is used.
  private func loadForSave(_ state: inout State) throws(StateError) {
    do throws(StateError) { _ = try load(&state) } catch {
      guard case .system(_, let errno) = error, SystemdError.isShortage(errno),
        state.files.releasePrepared()
      else { throw error }
      _ = try load(&state)
    }
  }

  // MARK: Closing

  /// Releases the lock, so that another store can open the state. Further calls throw `unusable`.
  ///
  /// Deallocation releases it too, perhaps a moment after the hook of the store's observer has returned.
  public func close() { state.withLock { $0.files.close() } }

  // MARK: Setting aside

  /// Renames the files of the state to `NAME.0.bad` and similar names, so that the program can start with a new state
  /// and the files can be examined. Earlier ones are not overwritten.
  ///
  /// For a state that can't be loaded:
  ///
  /// ```swift
  /// do { state = try store.load() } catch {
  ///   log("\(error) It is kept as \(try store.setAside()).")
  /// }
  /// ```
  ///
  /// - Returns: The new paths of the files.
  /// - Throws: `inUse`, `unusable`, or a failed call.
  public func setAside() throws(StateError) -> [String] {
    try state.withLock { state throws(StateError) in
      try state.prepare()
      state.isChecked = false
      return try state.files.setAside()
    }
  }
}
