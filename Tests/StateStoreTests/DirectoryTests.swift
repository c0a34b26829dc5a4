// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// The store on real files: whose they are, what they are, and where they are.
@Suite("State: real files", .offThePool) struct DirectoryTests {
  private let directory: Folder
  private let one = Array("one".utf8)
  private let two = Array("two".utf8)

  init() throws { directory = try Folder() }

  private func store(_ path: String? = nil) throws(StateError) -> StateStore {
    try StateStore(directory: path ?? directory.path)
  }

  private func opening(_ path: String? = nil) -> StateError? {
    error { () throws(StateError) in _ = try store(path) }
  }

  private func loading(_ store: StateStore) -> StateError? {
    error { () throws(StateError) in _ = try store.load() }
  }

  private func saving(_ store: StateStore) -> StateError? {
    error { () throws(StateError) in try store.save(two) }
  }

  private func move(_ from: String, _ to: String) {
    #expect(rename(from, to) == 0)
  }

  private func write(_ bytes: [UInt8], _ name: String) throws {
    let file = try LinuxFileSystem.shared.open(directory.path, in: AT_FDCWD, .directory)
    defer { close(file) }
    let made = try LinuxFileSystem.shared.open(name, in: file, .create)
    defer { close(made) }
    if !bytes.isEmpty { _ = try LinuxFileSystem.shared.write(made, bytes[...]) }
  }

  @Test func savesAndLoads() throws {
    let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 * 31) }
    for _ in 0..<3 {
      try store().save(one)
      let other = try store()
      try other.save(large)
      #expect(try other.load()?.bytes == large)
    }
    #expect(directory.names == [".state.new", "state.0", "state.1", "state.lock"])
    for name in directory.names {
      var status = stat()
      #expect(stat("\(directory.path)/\(name)", &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
  }

  @Test func whatACrashHasLeftIsRemovedAndNothingElse() throws {
    for name in [".state.new", ".other.new"] { try write([1], name) }
    try store().save(one)
    #expect(directory.names == [".other.new", ".state.new", "state.0", "state.lock"])
    #expect(directory.size(of: ".state.new") == 0)
  }

  @Test func whatTheKernelAnswersIsPassedOn() throws {
    let files = LinuxFileSystem.shared
    let closed = SystemCallError(number: EBADF)
    #expect(throws: closed) { try files.sync(-1) }
    #expect(throws: closed) { try files.read(-1, 1) }
    #expect(throws: closed) { try files.write(-1, [1]) }
    try write([], "empty")
    let folder = try files.open(directory.path, in: AT_FDCWD, .directory)
    let empty = try files.open("empty", in: folder, .read)
    defer { for file in [folder, empty] { close(file) } }
    #expect(try files.read(empty, 1) == [])
    let null = try files.open("/dev/null", in: AT_FDCWD, .lock)
    defer { close(null) }
    #expect(try files.write(null, []) == 0)
  }

  // MARK: The directory

  @Test func aDirectoryThatIsNotThere() throws {
    let path = "\(directory.path)/none"
    #expect(opening(path) == .noDirectory(path))
    try write([], "file")
    #expect(opening("\(directory.path)/file") == .notADirectory("\(directory.path)/file"))
    #expect(opening("") == .noDirectory(""))
  }

  @Test func aLinkOfOnesOwnIsFollowedAndAForeignOneIsNot() throws {
    let real = "\(directory.path)/real"
    let link = "\(directory.path)/link"
    mkdir(real, 0o700)
    symlink("real", link)
    try store(link).save(one)
    #expect(try store(real).load()?.bytes == one)
    guard geteuid() == 0 else { return }
    lchown(link, 12345, 12345)
    #expect(opening(link) == .foreignLink(link, uid: 12345))
    #expect(opening(link + "//") == .foreignLink(link, uid: 12345))
    symlink("nowhere", "\(directory.path)/dangling")
    #expect(opening("\(directory.path)/dangling") == .noDirectory("\(directory.path)/dangling"))
  }

  @Test func aDirectoryThatIsSwappedIsNoticed() throws {
    let path = "\(directory.path)/state"
    let away = "\(directory.path)/away"
    let trap = "\(directory.path)/trap"
    mkdir(path, 0o700)
    mkdir(trap, 0o700)
    let store = try store(path)
    try store.save(one)
    move(path, away)
    #expect(saving(store) == .directoryReplaced(path))
    symlink("trap", path)
    #expect(saving(store) == .directoryReplaced(path))
    #expect(loading(store) == .directoryReplaced(path))
    unlink(path)
    mkdir(path, 0o700)
    #expect(saving(store) == .directoryReplaced(path))
    #expect(Folder.names(trap) == [] && Folder.names(path) == [])
    rmdir(path)
    move(away, path)
    #expect(saving(store) == nil)
    #expect(try store.load()?.bytes == two)
  }

  /// Nothing can be in its place that was not saved by this store.
  @Test func aDirectoryThatIsRemovedAndMadeAgainIsUsed() throws {
    let path = "\(directory.path)/state"
    mkdir(path, 0o700)
    let store = try store(path)
    try store.save(one)
    for name in Folder.names(path) { unlink("\(path)/\(name)") }
    rmdir(path)
    #expect(saving(store) == .noDirectory(path))
    mkdir(path, 0o700)
    #expect(saving(store) == nil)
    #expect(opening(path) == .inUse(path: path))
    store.close()
    #expect(try self.store(path).load()?.bytes == two)
  }

  // MARK: The files

  @Test(.enabled(if: geteuid() == 0, "Needs root, to give a file to another user."))
  func aFileOfAnotherUserIsRefused() throws {
    try store().save(one)
    let file = "\(directory.path)/state.0"
    chown(file, 12345, 12345)
    let store = try store()
    #expect(loading(store) == .foreignOwner(file, uid: 12345))
    #expect(saving(store) == .foreignOwner(file, uid: 12345))
    #expect(directory.names == [".state.new", "state.0", "state.lock"])
    chown(file, 0, 0)
    #expect(saving(store) == nil)
  }

  @Test(.enabled(if: geteuid() == 0, "Needs root, to give a file to another user."))
  func aLockOfAnotherUserIsRefused() throws {
    try write([], "state.lock")
    chown("\(directory.path)/state.lock", 12345, 12345)
    #expect(opening() == .foreignOwner("\(directory.path)/state.lock", uid: 12345))
  }

  @Test(arguments: ["directory", "link", "fifo"])
  func whatIsNoFileIsRefused(_ kind: String) throws {
    for name in ["state.0", "state.1", "state.lock"] {
      let path = "\(directory.path)/\(name)"
      unlink("\(directory.path)/state.lock")
      switch kind {
      case "directory": mkdir(path, 0o700)
      case "link": symlink("elsewhere", path)
      default: mkfifo(path, 0o600)
      }
      if name == "state.lock" {
        #expect(opening() == .notAFile(path: path))
      } else {
        let store = try store()
        #expect(loading(store) == .notAFile(path: path))
        #expect(saving(store) == .notAFile(path: path))
        #expect(try store.setAside() == [path + ".bad"])
        #expect(saving(store) == nil)
        #expect(try store.setAside().count == 1)
      }
      unlink(path)
      rmdir(path)
      for left in directory.names where left.contains(".bad") {
        unlink("\(directory.path)/\(left)")
        rmdir("\(directory.path)/\(left)")
      }
    }
    #expect(!directory.names.contains("elsewhere"))
  }

  @Test func aDirectoryInPlaceOfTheNewFileIsRefused() throws {
    mkdir("\(directory.path)/.state.new", 0o700)
    #expect(saving(try store()) == .notAFile(path: "\(directory.path)/.state.new"))
  }

  /// A second name of the lock could be a file of ours that the lock would overwrite.
  @Test func aLockWithTwoNamesIsRefused() throws {
    try write(Array("precious".utf8), "precious")
    link("\(directory.path)/precious", "\(directory.path)/state.lock")
    #expect(opening() == .notAFile(path: "\(directory.path)/state.lock"))
    var status = stat()
    #expect(stat("\(directory.path)/precious", &status) == 0 && status.st_size == 8)
  }

  // MARK: Whose directory

  @Test(.enabled(if: geteuid() == 0, "Needs root, to give a directory away."))
  func aDirectoryOfAnotherUserIsRefused() {
    #expect(chown(directory.path, 65534, 65534) == 0)
    #expect(opening() == .foreignDirectory(directory.path, uid: 65534))
    #expect(directory.names == [])
  }

  @Test func aDirectoryInWhichAllMayReplaceFilesIsRefused() {
    #expect(chmod(directory.path, 0o777) == 0)
    #expect(opening() == .unprotectedDirectory(directory.path))
    #expect(directory.names == [])
    // As /tmp: others may make files, and not replace ours.
    #expect(chmod(directory.path, 0o1777) == 0)
    #expect(opening() == nil)
    #expect(chmod(directory.path, 0o775) == 0)
    #expect(opening() == nil, "a group is what its members make of it")
  }

  // MARK: Disks

  /// A full disk, a quota and a disk that is read-only, as far as a mount namespace of root's gives them.
  @Test(.enabled(if: Disk.canMount, "Needs root, and leave to mount."))
  func aFullDisk() throws {
    try Disk.withMemory("size=256k") { disk in
      let store = try store(disk.path)
      try store.save(one)
      #expect(
        error { () throws(StateError) in try store.save([UInt8](repeating: 1, count: 300_000)) }
          == .noSpace(purpose: "save the state in \(disk.path)", errno: ENOSPC))
      #expect(Folder.names(disk.path) == [".state.new", "state.0", "state.lock"])
      #expect(try store.load()?.bytes == one)
      // A child that another test has just forked has the removed file open until its exec.
      try eventually("there is room again", within: 60) { saving(store) == nil }
    }
  }

  @Test(.enabled(if: Disk.canMount, "Needs root, and leave to mount."))
  func aReadOnlyDisk() throws {
    try Disk.withMemory("size=256k") { disk in
      try store(disk.path).save(one)
      try disk.remount("ro")
      let store = try store(disk.path)
      #expect(try store.load()?.bytes == one)
      #expect(saving(store) == .readOnly(purpose: "lock the state in \(disk.path)"))
      try disk.remount("rw")
      #expect(saving(store) == nil)
      #expect(try store.load()?.bytes == two)
      #expect(
        Folder.names(disk.path) == [".state.new", "state.0", "state.1", "state.lock"])
    }
  }
}
