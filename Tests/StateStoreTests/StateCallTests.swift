// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// Which system calls a store makes, and what it makes of those that fail.
@Suite("State: its system calls") struct StateCallTests {
  private let disk = CrashFileSystem()
  private let one = Array("one".utf8)
  private let two = Array("two".utf8)

  private func open(
    _ files: any StateFileSystem, _ path: String = "/state", version: UInt32 = 1,
    limit: Int = 1000
  ) throws(StateError) -> StateStore {
    try StateStore(path, "s", version: version, limit: limit, files: files)
  }

  private func opening(_ files: any StateFileSystem, _ path: String = "/state") -> StateError? {
    error { () throws(StateError) in _ = try open(files, path) }
  }

  private func loading(_ store: StateStore) -> StateError? {
    error { () throws(StateError) in _ = try store.load() }
  }

  private func saving(_ store: StateStore, _ bytes: [UInt8] = [3]) -> StateError? {
    error { () throws(StateError) in try store.save(bytes) }
  }

  private func file(_ generation: UInt64, _ bytes: [UInt8], version: UInt32 = 1) -> [UInt8] {
    StateRecord(version: version, generation: generation, bytes: bytes).encoded
  }

  /// Whole, and of a format that this release does not know.
  private func newerFile() -> [UInt8] {
    var file = Array(file(1, one).prefix(32))
    file[8] = 2
    var checksum = StateChecksum()
    checksum.update(file[...])
    for shift in 0..<8 { file.append(UInt8(truncatingIfNeeded: checksum.value >> (shift * 8))) }
    return file
  }

  private func image(_ files: [String: [UInt8]]) -> DiskImage {
    var image = DiskImage()
    for (name, bytes) in files { image.files[name] = bytes }
    return image
  }

  // MARK: The directory

  @Test(arguments: [("/", "/"), ("//", "/"), ("/state//", "/state"), ("state", "state")])
  func slashesAtTheEndOfAPathAreNotPartOfIt(_ given: String, _ path: String) throws {
    #expect(try open(disk, given).directory == path)
  }

  @Test func aPathThatIsCutOffByAZeroByteIsNotOpened() {
    #expect(opening(disk, "/a\0b") == .noDirectory("/a\0b"))
    #expect(opening(disk, "/a\u{1}b") == nil)
  }

  /// The tests' user is 1000.
  @Test func aDirectoryMayBeRootsOrOnesOwn() {
    func opening(_ owner: UInt32) -> StateError? {
      let files = WatchedFileSystem(disk) { call, status in
        call == "fstat ." ? status.with(owner: owner) : status
      }
      return self.opening(files)
    }
    #expect(opening(0) == nil)
    #expect(opening(1000) == nil)
    #expect(opening(1) == .foreignDirectory("/state", uid: 1))
    #expect(opening(999) == .foreignDirectory("/state", uid: 999))
  }

  @Test func aLinkMayBeRootsOrOnesOwn() {
    func opening(_ owner: UInt32) -> (StateError?, [String]) {
      let files = WatchedFileSystem(disk) { call, status in
        call == "stat ." ? status.with(kind: .link, owner: owner, links: 1) : status
      }
      return (self.opening(files), Array(files.calls.prefix(2)))
    }
    for owner: UInt32 in [0, 1000] {
      let (error, calls) = opening(owner)
      #expect(error == nil && calls == ["stat .", "open linkedDirectory ."])
    }
    for owner: UInt32 in [1, 999] {
      #expect(opening(owner).0 == .foreignLink("/state", uid: owner))
    }
    let files = WatchedFileSystem(disk)
    #expect(self.opening(files) == nil)
    #expect(files.calls.prefix(2) == ["stat .", "open directory ."])
  }

  @Test(arguments: ["stat .", "open directory ."])
  func aDirectoryThatCannotBeOpened(_ call: String) {
    func opening(_ number: Int32) -> StateError? {
      let files = WatchedFileSystem(disk)
      files.fail(call, number)
      return self.opening(files)
    }
    #expect(opening(ENOENT) == .noDirectory("/state"))
    #expect(opening(ENOTDIR) == .notADirectory("/state"))
    #expect(opening(ELOOP) == .notADirectory("/state"))
    #expect(opening(EACCES) == .system(purpose: "open the state directory /state", errno: EACCES))
    #expect(opening(EINTR) == nil)
  }

  @Test func aDirectoryWhoseOwnerIsNotKnownIsNotUsed() {
    let files = WatchedFileSystem(disk)
    files.fail("fstat .", EIO)
    #expect(opening(files) == .system(purpose: "open the state directory /state", errno: EIO))
  }

  // MARK: The lock

  @Test func aLockFileThatCannotBeOpened() {
    func opening(_ number: Int32) -> StateError? {
      let files = WatchedFileSystem(disk)
      files.fail("open lock s.lock", number)
      return self.opening(files)
    }
    for number in [ELOOP, EISDIR, ENXIO] {
      #expect(opening(number) == .notAFile(path: "/state/s.lock"))
    }
    #expect(opening(EACCES) == .system(purpose: "lock the state in /state", errno: EACCES))
  }

  /// Whoever removes the file between our opening and locking it has the next one locked, and so has everybody else.
  @Test func aLockFileThatIsReplacedMeanwhileIsOpenedAgainButNotForEver() {
    func opens(replaced times: Int) -> (StateError?, Int) {
      let files = WatchedFileSystem(disk)
      // Gone, and made again by the next try.
      files.fail("stat s.lock", ENOENT, times: times)
      return (opening(files), files.calls.count { $0 == "open lock s.lock" })
    }
    #expect(opens(replaced: 0) == (nil, 1))
    #expect(opens(replaced: 3) == (nil, 4))
    #expect(opens(replaced: 99) == (nil, 100))
    #expect(
      opens(replaced: 100) == (.system(purpose: "lock the state in /state", errno: EBUSY), 100))
  }

  @Test func aLockFileIsNeitherNobodysNorThatOfTwoNames() {
    func opening(_ links: [Int]) -> StateError? {
      let left = Mutex(links)
      let files = WatchedFileSystem(disk) { call, status in
        guard call == "fstat s.lock", let links = left.withLock({ $0.popLast() }) else {
          return status
        }
        return status.with(links: links)
      }
      return self.opening(files)
    }
    #expect(opening([1, 0, 0]) == nil)
    #expect(opening([2]) == .notAFile(path: "/state/s.lock"))
  }

  // MARK: Loading

  @Test func aFileThatCannotBeOpened() throws {
    try open(disk).save(one)
    func loading(_ number: Int32) throws -> StateError? {
      let files = WatchedFileSystem(disk)
      let store = try open(files)
      files.fail("open read s.0", number)
      return self.loading(store)
    }
    for number in [ELOOP, ENXIO] { #expect(try loading(number) == .notAFile(path: "/state/s.0")) }
    #expect(try loading(EACCES) == .system(purpose: "read /state/s.0", errno: EACCES))
    #expect(try loading(EINTR) == nil)
  }

  @Test func aFileThatTheDiskHasLostIsBrokenAndOtherErrorsAreErrors() throws {
    let files = WatchedFileSystem(disk)
    let store = try open(files)
    try store.save(one)
    try store.save(two)
    // Read once more, it may be there: then it is not overwritten.
    files.fail("read s.1", EIO)
    #expect(try store.load()?.bytes == two)
    files.fail("read s.1", EIO, times: 2)
    let found = try #require(try store.load())
    #expect(found.bytes == one && found.broken == ["/state/s.1 can't be read from the disk"])
    files.fail("read s.1", ENOMEM)
    #expect(loading(store) == .system(purpose: "read /state/s.1", errno: ENOMEM))
    #expect(try store.load()?.bytes == two)
  }

  /// Nothing waits to be written to a disk that is read-only, and some files have nothing to sync.
  @Test(arguments: ["sync s.0", "sync ."])
  func aLoadOfWhatCannotBeSynced(_ call: String) throws {
    try open(disk).save(one)
    func loading(_ number: Int32) throws -> StateError? {
      let files = WatchedFileSystem(disk)
      let store = try open(files)
      files.fail(call, number)
      return self.loading(store)
    }
    #expect(try loading(EROFS) == nil)
    #expect(try loading(EINVAL) == nil)
    #expect(try loading(EIO) == .system(purpose: "make /state/s.0 durable", errno: EIO))
  }

  /// As after `cp`, or a restored backup: what has once been loaded is not gone after a power cut.
  @Test func aLoadMakesDurableWhatNobodyHasSynced() throws {
    let folder = try disk.open("/state", in: AT_FDCWD, .directory)
    let copy = try disk.open("s.0", in: folder, .create)
    _ = try disk.write(copy, file(1, one)[...])
    #expect(disk.afterPowerCut().images.contains { $0.files["s.0"] != file(1, one) })
    #expect(try open(disk).load()?.bytes == one)
    for image in disk.afterPowerCut().images { #expect(image.files["s.0"] == file(1, one)) }
  }

  // MARK: Descriptors

  @Test func aFirstSaveWithoutDescriptorsLoads() throws {
    try open(disk).save(one)
    let files = WatchedFileSystem(disk)
    let store = try open(files)
    files.limitDescriptors(to: files.openCount)
    try store.save(two)
    try store.save(one)
    #expect(try open(CrashFileSystem(disk.visible)).load()?.generation == 3)
  }

  @Test func onlyWhatADescriptorWouldMendIsReadASecondTime() throws {
    try open(disk).save(one)
    for number in [EIO, EMFILE] {
      let files = WatchedFileSystem(disk)
      if number == EMFILE { files.fail("open create NEW", EMFILE, times: 2) }
      let store = try open(files)
      files.fail("open read s.0", number)
      #expect(saving(store) == .system(purpose: "read /state/s.0", errno: number))
    }
  }

  @Test func aLoadMakesTheReserveThatCouldNotBeMadeBefore() throws {
    let files = WatchedFileSystem(disk)
    files.fail("open create NEW", EMFILE)
    let store = try open(files)
    #expect(try store.load() == nil)
    files.limitDescriptors(to: files.openCount)
    try store.save(one)
  }

  @Test func aClosedStoreHasOnlyItsDirectoryOpen() throws {
    let files = WatchedFileSystem(disk)
    let store = try open(files)
    try store.save(one)
    #expect(files.openCount == 3)
    store.close()
    #expect(files.openCount == 1)
  }

  @Test func whatCannotBeExaminedIsClosed() throws {
    let files = WatchedFileSystem(disk)
    files.fail("fstat NEW", EIO)
    let store = try open(files)
    #expect(files.openCount == 2)
    // A number that was opened is still the store's while nothing else is known of it.
    files.fail("fstat s.lock", EIO, times: 2)
    store.close()
    #expect(files.openCount == 1)
  }

  // MARK: Saving

  @Test func whatAFailedSaveCouldNotRemoveTheNextOneDoes() throws {
    let files = WatchedFileSystem(disk)
    let store = try open(files)
    files.fail("sync NEW", ENOSPC)
    files.fail("remove NEW", EIO, times: 2)
    #expect(saving(store) == .noSpace(purpose: "save the state in /state", errno: ENOSPC))
    #expect(FaultProof.hasLeftover(disk.visible))
    try store.save(two)
    #expect(!FaultProof.hasLeftover(disk.visible))
  }

  @Test func aPreparedFileThatWasRemovedOrReplacedIsMadeAgain() throws {
    let memory = StateMemory()
    let store = try StateStore(memory: memory)
    for state in [one, two] {
      memory.contents[".state.new"] = nil
      if state == two { memory.contents[".state.new"] = [1] }
      try store.save(state)
      #expect(try store.load()?.bytes == state)
    }
  }

  @Test func aDirectoryInAFilesPlaceIsSaid() throws {
    func saving(_ number: Int32) throws -> StateError? {
      let files = WatchedFileSystem(CrashFileSystem())
      let store = try open(files)
      files.fail("rename NEW s.0", number)
      return self.saving(store)
    }
    #expect(try saving(EISDIR) == .notAFile(path: "/state/s.0"))
    #expect(try saving(ENOTEMPTY) == .notAFile(path: "/state/s.0"))
    #expect(try saving(EACCES) == .system(purpose: "save the state in /state", errno: EACCES))
  }

  /// No daemon saves so often, but a file that somebody has made may say so.
  @Test(arguments: [1 << 63 - 1, 1 << 63, 1 << 63 + 1, .max - 1, .max] as [UInt64])
  func eachGenerationHasANextOne(_ generation: UInt64) throws {
    let disk = CrashFileSystem(
      image(["s.0": file(generation &- 1, two), "s.1": file(generation, one)]))
    let store = try open(disk)
    #expect(try store.load()?.bytes == one)
    for bytes in [two, one, two] {
      try store.save(bytes)
      #expect(try open(CrashFileSystem(disk.visible)).load()?.bytes == bytes)
    }
    #expect(try store.load()?.generation == generation &+ 3)
  }

  // MARK: Limits

  @Test func aStateMayBeAsLongAsItsLimit() throws {
    for limit in [0, 3] {
      let store = try open(CrashFileSystem(), limit: limit)
      let most = [UInt8](repeating: 1, count: limit)
      try store.save(most)
      #expect(try store.load()?.bytes == most)
      #expect(
        saving(store, most + [1])
          == .tooLong(path: "/state", count: UInt64(limit) + 1, limit: limit))
    }
    let none = try open(disk, limit: -5)
    try none.save([])
    #expect(saving(none, [1]) == .tooLong(path: "/state", count: 1, limit: 0))
  }

  @Test func byDefaultALimitIs64MiBAndTheVersionIs1() throws {
    let tooLong = [UInt8](repeating: 0, count: 64 << 20 + 1)
    func check(_ path: String, _ store: StateStore) throws {
      #expect(
        saving(store, tooLong)
          == .tooLong(path: path, count: UInt64(tooLong.count), limit: 67_108_864))
      #expect(saving(store) == nil)
      #expect(try store.load()?.version == 1)
    }
    let first = try Folder()
    try check(first.path, try StateStore(directory: first.path))
    let second = try Folder()
    let environment = ServiceEnvironment(["STATE_DIRECTORY": "\(second.path):/elsewhere"])
    try check(second.path, try StateStore(environment: environment))
    try check("/state", try StateStore("/state", "s", version: 1, files: disk))
  }

  @Test func namesAreOfLettersDigitsAndThreeSigns() throws {
    func naming(_ name: String) -> StateError? {
      error { () throws(StateError) in
        _ = try StateStore("/state", name, version: 1, files: CrashFileSystem())
      }
    }
    let signs = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_")
    for byte: UInt8 in 0..<128 {
      let sign = Character(UnicodeScalar(byte))
      #expect((naming("a\(sign)") == nil) == signs.contains(sign), "\(byte)")
    }
    #expect(naming(String(repeating: "a", count: 200)) == nil)
    for name in ["", ".", "..", ".a", "\u{e4}", String(repeating: "a", count: 201)] {
      guard case .unusable = naming(name) else {
        Issue.record("\(name)")
        continue
      }
    }
  }

  /// Also when it has been loaded before: what can't be loaded any more is not replaced.
  @Test func whatALaterProgramHasPutThereIsNotOverwritten() throws {
    let memory = StateMemory()
    let store = try StateStore(memory: memory)
    try store.save(one)
    memory.contents["state.0"] = file(7, two, version: 9)
    let expected = StateError.newerVersion(path: "(memory)/state.0", found: 9, known: 1)
    #expect(loading(store) == expected)
    #expect(saving(store) == expected)
    // Nor by one that saves first.
    store.close()
    #expect(saving(try StateStore(memory: memory)) == expected)
    #expect(memory.contents["state.1"] == nil)
  }

  /// Until the second save of the later program, a rollback finds the state from before, by what the error says.
  @Test func aRollbackFindsTheStateFromBefore() throws {
    let memory = StateMemory()
    func store(_ version: UInt32) throws -> StateStore {
      try StateStore(memory: memory, version: version)
    }
    for bytes in [one, two] {
      let old = try store(1)
      try old.save(bytes)
      old.close()
    }
    let new = try store(2)
    _ = try new.load()
    try new.save([3])
    new.close()
    let old = try store(1)
    #expect(
      loading(old)
        == .newerVersion(path: "(memory)/state.0", found: 2, known: 1, before: "(memory)/state.1"))
    memory.contents["state.0"] = nil
    #expect(try old.load()?.bytes == two)
    old.close()
    let again = try store(2)
    _ = try again.load()
    for bytes in [[4], [5]] as [[UInt8]] { try again.save(bytes) }
    again.close()
    guard case .newerVersion(_, _, _, before: nil) = loading(try store(1)) else {
      Issue.record("both files are the later program's")
      return
    }
  }

  // MARK: Unchanged

  /// It has lost what was last saved here: that is not on disk, though it was.
  @Test func whatADiskHasLostIsSavedAgain() throws {
    let files = WatchedFileSystem(disk)
    let store = try open(files)
    #expect(try store.saveIfChanged(one))
    #expect(try store.saveIfChanged(two))
    files.fail("read s.1", EIO, times: 2)
    #expect(try store.load()?.bytes == one)
    #expect(try store.saveIfChanged(two))
    #expect(try store.load()?.bytes == two)
    // And with a broken file beside it, for the sake of that one.
    files.fail("read s.0", EIO, times: 2)
    #expect(try store.load()?.bytes == two)
    #expect(try store.saveIfChanged(two))
    #expect(try !store.saveIfChanged(two))
  }

  @Test func filesThatWereRemovedAreSavedAgainFromTheFirst() throws {
    let memory = StateMemory()
    let store = try StateStore(memory: memory)
    for state in [one, two, one] { #expect(try store.saveIfChanged(state)) }
    memory.contents["state.0"] = nil
    memory.contents["state.1"] = nil
    #expect(try store.load() == nil)
    #expect(try store.saveIfChanged(one))
    #expect(memory.contents["state.0"] != nil)
  }

  // MARK: Setting aside

  /// What can't be read may be the newest: were it renamed first, a crash would bring the older one up.
  @Test func theNewestIsSetAsideLast() throws {
    let newer = newerFile()
    for (files, paths) in [
      (["s.0": newer, "s.1": file(1, one)], ["/state/s.1.bad", "/state/s.0.bad"]),
      (["s.0": file(1, one), "s.1": newer], ["/state/s.0.bad", "/state/s.1.bad"]),
      (["s.0": file(2, one), "s.1": file(1, two)], ["/state/s.1.bad", "/state/s.0.bad"]),
      (["s.0": [], "s.1": []], ["/state/s.0.bad", "/state/s.1.bad"]),
    ] {
      let store = try open(CrashFileSystem(image(files)))
      #expect(try store.setAside() == paths)
    }
  }

  /// However many have been before.
  @Test func aNameForWhatIsSetAsideIsFound() throws {
    let memory = StateMemory()
    let store = try StateStore(memory: memory)
    memory.contents["state.0.bad"] = []
    for number in 2...2999 { memory.contents["state.0.bad.\(number)"] = [] }
    for number in 3000...3002 {
      try store.save(one)
      #expect(try store.setAside() == ["(memory)/state.0.bad.\(number)"])
    }
  }

  /// Of a process that ran as root.
  @Test func theOwnerOfALockThatCannotBeOpenedIsNamed() throws {
    let files = WatchedFileSystem(disk) { call, status in
      call == "stat s.lock" ? status.with(owner: 4242) : status
    }
    _ = try open(files)
    files.fail("open lock", EACCES, times: 2)
    #expect(opening(files) == .foreignOwner("/state/s.lock", uid: 4242))
  }
}
