// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What the readiness file does about what is in its place, and about system calls that fail.
@Suite("Readiness: the file", .timeLimit(.minutes(1))) struct ReadinessFileTests {
  private let folder = Folder()
  private let log = Log()
  private var path: String { folder.path("ready") }

  private func marker(
    _ path: String? = nil, files: any StateFileSystem = LinuxFileSystem.shared
  ) -> ReadinessMarker {
    ReadinessMarker(path ?? self.path, files: files) { [log] in log.add($0) }
  }

  // MARK: What was there before

  @Test(arguments: ["ready\npid 1\nsince 2026-11-21 11:12:03\n", "ready\n", "rea", ""])
  func aDeadProcesssFileGoesBeforeTheLaunch(text: String) {
    folder.write(text, to: "ready")
    let marker = marker()
    marker.prepare()
    #expect(folder.names == [])
    marker.set(true, number: 1)
    #expect(folder.names == ["ready"] && log.all == [])
  }

  @Test func soDoesOneThatWasNotFinished() {
    folder.write("rea", to: ".ready.new")
    let marker = marker()
    marker.set(true, number: 1)
    #expect(folder.names == ["ready"] && log.all == [])
  }

  @Test(arguments: ["key=value\n", "readable\n", "READY\n"])
  func aFileOfAnotherKindStays(text: String) throws {
    folder.write(text, to: "ready")
    let marker = marker()
    marker.prepare()
    marker.set(true, number: 1)
    marker.set(false, number: 2)
    #expect(folder.text(of: "ready") == text)
    #expect(
      log.all == [
        "The readiness file \(path) can't be made, since there is a file that is no readiness file in its place"
          + ": take that away."
      ], "said once")
  }

  @Test(arguments: ["directory", "symbolic link", "regular file"])
  func whatIsNoFileStays(kind: String) {
    switch kind {
    case "directory": mkdir(path, 0o700)
    case "symbolic link":
      folder.write("ready\n", to: "elsewhere")
      symlink(folder.path("elsewhere"), path)
    default: mkfifo(path, 0o600)
    }
    let names = folder.names
    let marker = marker()
    marker.prepare()
    marker.set(true, number: 1)
    marker.set(false, number: 2)
    #expect(folder.names == names)
    #expect(log.all.count == 1 && log.all[0].contains(kind), "\(log.all)")
  }

  @Test func itIsMadeWhenTheWayIsFree() {
    mkdir(path, 0o700)
    let marker = marker()
    marker.set(true, number: 1)
    #expect(log.all.count == 1)
    rmdir(path)
    marker.set(false, number: 2)
    marker.set(true, number: 3)
    #expect(folder.text(of: "ready")?.hasPrefix("ready\npid \(getpid())\n") == true)
    #expect(log.all.count == 1)
  }

  @Test func aLivingProcesssFileStays() {
    let first = marker()
    first.set(true, number: 1)
    let second = marker()
    second.prepare()
    second.set(true, number: 1)
    second.set(false, number: 2)
    #expect(folder.names == ["ready"])
    #expect(log.all.count == 1 && log.all[0].contains("a running process has it"), "\(log.all)")
    first.set(false, number: 2)
    #expect(folder.names == [])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func anotherUsersFileStays() throws {
    folder.write("ready\n", to: "ready")
    #expect(chown(path, 12345, 12345) == 0)
    let marker = marker()
    marker.prepare()
    #expect(folder.names == ["ready"])
    #expect(log.all.count == 1 && log.all[0].contains("user 12345"), "\(log.all)")
  }

  // MARK: What happens to it meanwhile

  @Test func oneThatWasPutInItsPlaceStays() {
    let marker = marker()
    marker.set(true, number: 1)
    unlink(path)
    folder.write("ready\n", to: "ready")
    marker.set(false, number: 2)
    #expect(folder.text(of: "ready") == "ready\n")
    #expect(log.all.count == 1 && log.all[0].contains("replaced"), "\(log.all)")
  }

  @Test func oneThatWasTakenAwayIsMadeAnew() {
    let marker = marker()
    marker.set(true, number: 1)
    unlink(path)
    marker.set(false, number: 2)
    #expect(log.all.count == 1 && log.all[0].contains("removed already"), "\(log.all)")
    marker.set(true, number: 3)
    #expect(folder.names == ["ready"])
  }

  @Test func itIsRemovedInTheDirectoryInWhichItWasMade() {
    mkdir(folder.path("run"), 0o700)
    let marker = marker(folder.path("run/ready"))
    marker.set(true, number: 1)
    _ = rename(folder.path("run"), folder.path("moved"))
    marker.set(false, number: 2)
    #expect(!exists(folder.path("moved/ready")) && log.all == [])
  }

  @Test func whatIsOlderIsVoid() {
    let marker = marker()
    marker.set(false, number: 2)
    marker.set(true, number: 1)
    #expect(folder.names == [])
    marker.set(true, number: 3)
    marker.set(false, number: 2)
    #expect(folder.names == ["ready"])
  }

  // MARK: Paths

  @Test(arguments: ["", "ready", "run/ready", "/run/", "/", "/run/..", "/run/.", "/run/a\0b"])
  func aBadPathIsSaid(path: String) {
    let marker = marker(path)
    marker.prepare()
    marker.set(true, number: 1)
    marker.set(false, number: 2)
    #expect(log.all.count == 1 && log.all[0].contains("not the absolute path"), "\(log.all)")
  }

  @Test func aMissingDirectoryIsSaid() {
    let marker = marker(folder.path("run/ready"))
    marker.prepare()
    marker.set(true, number: 1)
    #expect(
      log.all == [
        "The readiness file \(folder.path("run/ready")) can't be made, since there is no directory"
          + " \(folder.path("run")): mount or make it."
      ])
  }

  // MARK: Calls that fail

  /// Without another change: a daemon that goes on serving must not look unready for a disk that was full once.
  @Test func whatFailsOnceIsTriedAgainUntilTheFileIsThere() async throws {
    var index = 0
    while true {
      let folder = Folder()
      let files = BreakingFileSystem(at: index, ENOSPC)
      let marker = ReadinessMarker(folder.path("ready"), files: files) {
        [log] in log.add($0)
      }
      let core = LifecycleCore(configuration: LifecycleConfiguration())
      defer { core.close() }
      core.show((marker, isReady: true, number: 1))
      try await eventually("it is ready after a failure of call \(index)") {
        folder.names.contains("ready")
      }
      marker.set(false, number: 2)
      guard files.hasBroken else { break }
      index += 1
    }
    #expect(index >= 8)
  }

  /// Each call of a life is made to fail, with each error: never a crash, never two files, and never a file
  /// that stays although it could be removed.
  @Test func anyCallMayFail() {
    var cases = 0
    for errno in [EIO, ENOSPC, EACCES, EROFS, EINTR, EPERM] {
      var index = 0
      while true {
        let folder = Folder()
        folder.write("ready\n", to: "ready")
        let files = BreakingFileSystem(at: index, errno)
        let marker = ReadinessMarker(folder.path("ready"), files: files) {
          [log] in log.add($0)
        }
        marker.prepare()
        marker.set(true, number: 1)
        #expect(folder.names.count <= 1, "\(errno) at \(index): \(folder.names)")
        marker.set(false, number: 2)
        marker.set(true, number: 3)
        marker.set(false, number: 4)
        marker.set(false, number: 5)
        #expect(folder.names == [], "\(errno) at \(index)")
        guard files.hasBroken else { break }
        index += 1
        cases += 1
      }
      #expect(index > 15)
    }
    #expect(log.all.allSatisfy { $0.hasPrefix("The readiness file ") && $0.hasSuffix(".") })
    #expect(!log.all.contains { $0.contains("Interrupted") }, "EINTR is no error")
    print("readiness: \(cases) cases, \(log.all.count) warnings")
  }
}

/// The kernel's files, of which one call fails.
private final class BreakingFileSystem: StateFileSystem {
  private let base = LinuxFileSystem.shared
  private let left: Mutex<Int>
  private let errno: Int32

  init(at index: Int, _ errno: Int32) {
    left = Mutex(index)
    self.errno = errno
  }

  var hasBroken: Bool { left.withLock { $0 } < 0 }
  var userID: UInt32 { base.userID }
  var processID: Int32 { base.processID }
  func isRunning(_ process: Int32) -> Bool { true }
  func openUnnamed(in directory: Int32) throws(SystemCallError) -> Int32 {
    throw SystemCallError(number: EOPNOTSUPP)
  }
  func link(_ file: Int32, as name: String, in directory: Int32) throws(SystemCallError) {}

  private func call() throws(SystemCallError) {
    let isIt = left.withLock { left in
      left -= 1
      return left == -1
    }
    if isIt { throw SystemCallError(number: errno) }
  }

  func openDirectory(_ path: String, followingLink: Bool) throws(SystemCallError) -> Int32 {
    try call()
    return try base.openDirectory(path, followingLink: followingLink)
  }
  func status(ofPath path: String, followingLink: Bool) throws(SystemCallError) -> FileStatus {
    try call()
    return try base.status(ofPath: path, followingLink: followingLink)
  }
  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    try call()
    return try base.open(name, in: directory, mode)
  }
  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    try call()
    return try base.status(of: file)
  }
  func status(of name: String, in directory: Int32) throws(SystemCallError) -> FileStatus {
    try call()
    return try base.status(of: name, in: directory)
  }
  func names(in directory: Int32) throws(SystemCallError) -> [String] { [] }
  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    try call()
    return try base.read(file, count)
  }
  /// Half of it, so that it takes several.
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try call()
    return try base.write(file, bytes.prefix(max(1, bytes.count / 2)))
  }
  func truncate(_ file: Int32) throws(SystemCallError) { try call() }
  func sync(_ file: Int32) throws(SystemCallError) { try call() }
  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    try call()
    try base.rename(name, to: newName, in: directory)
  }
  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    try call()
    try base.remove(name, in: directory)
  }
  func lock(_ file: Int32) throws(SystemCallError) {
    try call()
    try base.lock(file)
  }
  func unlock(_ file: Int32) {}
  func close(_ file: Int32) { base.close(file) }
}
