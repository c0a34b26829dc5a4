// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// What a store does when other code of the process has closed its descriptors, and has their numbers for files of its own.
@Suite("State: descriptors that others have taken", .offThePool) struct TakenDescriptorTests {
  private let folder: Folder
  private let store: StateStore
  private var state: String { folder.path("state") }
  private let old = Array("old".utf8)
  private let new = Array("new".utf8)

  init() throws {
    folder = try Folder()
    for name in ["state", "other"] { mkdir(folder.path(name), 0o700) }
    store = try StateStore(directory: folder.path("state"))
    try store.save(old)
  }

  /// The descriptors that lead into the state's directory, or to it.
  private var numbers: [Int32] {
    (3..<1024).filter { number in
      let path = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      return path?.hasPrefix(state) == true
    }
  }

  /// Unlocked first: a child that another test is spawning right now has the lock, too, until it calls execve(2).
  private func closeAll() {
    for number in numbers {
      flock(number, LOCK_UN)
      close(number)
    }
  }

  /// Gives the number another file; of the same kind, where that is a directory.
  private func take(_ number: Int32) throws -> FileStatus {
    let files = LinuxFileSystem.shared
    let isDirectory = try files.status(of: number).kind == .directory
    let other = open(
      folder.path(isDirectory ? "other" : "file"),
      isDirectory ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT, 0o600)
    flock(number, LOCK_UN)
    #expect(other >= 0 && dup2(other, number) == number)
    close(other)
    return try files.status(of: number)
  }

  @Test(arguments: 0..<3) func nothingIsWrittenThereNorClosed(index: Int) throws {
    let numbers = numbers
    try #require(numbers.count == 3)
    let stranger = try take(numbers[index])
    #expect(try store.load()?.bytes == old)
    try store.save(new)
    #expect(Folder.names(folder.path("other")) == [] && folder.size(of: "file") == 0)
    #expect(throws: StateError.inUse(path: state)) { try StateStore(directory: state) }
    store.close()
    #expect(try StateStore(directory: state).load()?.bytes == new)
    #expect(try LinuxFileSystem.shared.status(of: numbers[index]) == stranger)
    close(numbers[index])
  }

  /// As a child has them between fork(2) and execve(2).
  @Test func copiesDoNotKeepTheLock() throws {
    let copies = numbers.map { dup($0) }
    defer { for copy in copies { close(copy) } }
    store.close()
    #expect(try StateStore(directory: state).load()?.bytes == old)
  }

  /// As after close_range(2).
  @Test func allAreOpenedAgain() throws {
    closeAll()
    try store.save(new)
    #expect(try store.load()?.bytes == new && numbers.count == 3)
  }

  /// The lock went with its descriptor, and another process has it now.
  @Test func whatIsLockedElsewhereIsNotSaved() throws {
    // Another process's numbers would be others.
    let taken = numbers
    for number in taken {
      flock(number, LOCK_UN)
      #expect(dup2(STDERR_FILENO, number) == number)
    }
    defer { for number in taken { close(number) } }
    let other = try StateStore(directory: state)
    try other.save(new)
    #expect(throws: StateError.inUse(path: state)) { try store.save(old) }
    other.close()
    // What the other has saved is the last state, which is loaded before the next save.
    try store.save(old)
    #expect(try store.load()?.generation == 3)
  }

  /// Its path leads elsewhere by now, so what is saved there would not be found.
  @Test func oneThatWasReplacedMeanwhileIsNotOpened() throws {
    closeAll()
    #expect(rename(state, folder.path("moved")) == 0 && mkdir(state, 0o700) == 0)
    #expect(throws: StateError.directoryReplaced(state)) { try store.save(new) }
  }
}
