// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycleState

/// What a store does with states, versions and other stores, on files in memory.
@Suite("State: the store") struct StateStoreTests {
  private let memory = StateMemory()
  private let one = Array("one".utf8)
  private let two = Array("two".utf8)

  private func store(version: UInt32 = 1, limit: Int = 64 << 20) throws -> StateStore {
    try StateStore(memory: memory, version: version, limit: limit)
  }

  // MARK: States

  @Test func whatIsSavedIsLoaded() throws {
    let store = try store()
    #expect(try store.load() == nil)
    store.close()
    for number in 1...5 {
      let bytes = Array("state \(number)".utf8)
      try self.store().save(bytes)
      let found = try #require(try self.store().load())
      #expect(found.bytes == bytes && found.version == 1 && found.generation == UInt64(number))
      #expect(found.broken.isEmpty && found.path == "(memory)/state.\(number % 2 == 1 ? 0 : 1)")
    }
    #expect(memory.contents.keys.sorted() == [".state.new", "state.0", "state.1", "state.lock"])
  }

  @Test func statesOfOtherNamesAreOthers() throws {
    let a = try StateStore(memory: memory, name: "a")
    let b = try StateStore(memory: memory, name: "a.0")
    try a.save(one)
    #expect(try b.load() == nil)
    try b.save(two)
    #expect(try a.load()?.bytes == one)
  }

  // MARK: Damage

  @Test func whenTheLastIsBrokenTheOneBeforeIsLoadedAndItIsSaid() throws {
    let first = try store()
    try first.save(one)
    try first.save(two)
    memory.contents["state.1"]?.removeLast()
    let found = try #require(try first.load())
    #expect(found.bytes == one && found.generation == 1)
    #expect(found.broken == ["(memory)/state.1 has 42 bytes instead of 43"])
    // The broken file is the one that goes.
    try first.save([3])
    #expect(try first.load()?.bytes == [3])
    memory.contents["state.1"] = []
    #expect(try first.load()?.bytes == one)
    #expect(try first.load()?.broken == ["(memory)/state.1 is empty"])
  }

  @Test func whenAllAreBrokenNothingIsLoadedNorSaved() throws {
    let first = try store()
    try first.save(one)
    try first.save(two)
    memory.contents["state.0"]?[45 - 5] ^= 1
    memory.contents["state.1"] = Array("{}".utf8)
    let before = memory.contents
    let found = error { () throws(StateError) in _ = try first.load() }
    #expect(
      found
        == .allBroken([
          "(memory)/state.0 fails its checksum",
          "(memory)/state.1 is not a state",
        ]))
    #expect(error { () throws(StateError) in try first.save([3]) } == found)
    #expect(memory.contents == before)

    #expect(try first.setAside() == ["(memory)/state.0.bad", "(memory)/state.1.bad"])
    #expect(try first.load() == nil)
    try first.save([3])
    memory.contents["state.0"] = []
    // And again, without losing what was set aside before.
    #expect(try first.setAside() == ["(memory)/state.0.bad.2"])
    #expect(memory.contents["state.0.bad"] == before["state.0"])
    #expect(memory.contents["state.1.bad"] == before["state.1"])
  }

  @Test func aHugeFileIsNotRead() throws {
    try store().save([UInt8](repeating: 1, count: 100))
    let small = try store(limit: 10)
    let found = error { () throws(StateError) in _ = try small.load() }
    #expect(found == .tooLong(path: "(memory)/state.0", count: 100, limit: 10))
    #expect(error { () throws(StateError) in try small.save(one) } == found)
    // Longer than its own header says: that is damage.
    memory.contents["state.0"]? += [1]
    guard case .allBroken = error({ () throws(StateError) in _ = try small.load() }) else {
      Issue.record("not broken")
      return
    }
  }

  // MARK: Versions

  @Test func anEarlierVersionIsLoadedAsItIsAndReplaced() throws {
    try store().save(one)
    let before = memory.contents["state.0"]
    let newer = try store(version: 3)
    let found = try #require(try newer.load())
    #expect(found.bytes == one && found.version == 1)
    // The same bytes are another state, of another version.
    #expect(try newer.saveIfChanged(one))
    #expect(try newer.load()?.version == 3)
    #expect(memory.contents["state.0"] == before)
  }

  // MARK: Others

  @Test func aClosedStoreIsNoObstacle() throws {
    let first = try store()
    try first.save(one)
    first.close()
    let second = try store()
    #expect(try second.load()?.bytes == one)
    #expect(error { () throws(StateError) in try first.save(two) } == .closed("(memory)"))
    #expect(error { () throws(StateError) in _ = try first.load() } == .closed("(memory)"))
    second.close()
    #expect(error { () throws(StateError) in _ = try first.setAside() } == .closed("(memory)"))
  }

  @Test func aLockFileThatWasTakenAwayIsMadeAgain() throws {
    let first = try store()
    try first.save(one)
    memory.contents["state.lock"] = nil
    // Another comes, saves and goes; nothing of that is lost.
    try store().save(two)
    memory.contents["state.lock"] = nil
    try first.save([3])
    #expect(try first.load()?.generation == 3)
    memory.contents["state.lock"] = nil
    let second = try store()
    #expect(error { () throws(StateError) in try first.save(one) } == .inUse(path: "(memory)"))
    withExtendedLifetime(second) {}
  }

  @Test func threadsWaitForEachOther() async throws {
    let store = try store()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          for round in 0..<25 {
            #expect(throws: Never.self) { try store.save([UInt8(number), UInt8(round)]) }
            #expect(throws: Never.self) { try store.load() }
          }
        }
      }
    }
    let last = try #require(try store.load())
    #expect(last.generation == 200 && last.broken.isEmpty)
  }

  // MARK: Failing

  private static let kept = "and save again; what was saved before is still there"

  @Test(arguments: [
    (ENOSPC, "No space left on device. Make room, \(kept)."),
    (EDQUOT, "Disk quota exceeded. Make room, \(kept)."),
    (EFBIG, "File too large. Raise the limit on a file's size (LimitFSIZE=), \(kept)."),
    (EROFS, "the file system is read-only. What was saved before is still there."),
    (EIO, "Input/output error (errno 5)."),
  ])
  func aSaveThatFailsSaysWhyAndLeavesTheOldState(_ number: Int32, _ reason: String) throws {
    let store = try store()
    try store.save(one)
    let before = memory.contents["state.0"]
    memory.failure = number
    let found = error { () throws(StateError) in try store.save(two) }
    #expect(found.map { "\($0)" } == "Could not save the state in (memory): \(reason)")
    #expect(memory.contents["state.0"] == before && memory.contents["state.1"] == nil)
    #expect(try store.load()?.bytes == one)
    memory.failure = nil
    try store.save(two)
    #expect(try store.load()?.bytes == two)
  }

  // MARK: Unchanged

  @Test func whatIsOnDiskIsNotSavedAgain() throws {
    let first = try store()
    #expect(try first.saveIfChanged(one))
    #expect(try !first.saveIfChanged(one))
    #expect(try first.saveIfChanged(two))
    #expect(try !first.saveIfChanged(two))
    #expect(try first.load()?.generation == 2)
    #expect(try !first.saveIfChanged(two))
    // Gone from the disk, it is saved again.
    memory.contents["state.1"] = nil
    #expect(try first.saveIfChanged(two))
    // Damaged, too.
    memory.contents["state.0"]?[40] ^= 1
    #expect(try first.saveIfChanged(two))
    // After a failure nobody knows.
    memory.failure = EIO
    #expect(error { () throws(StateError) in try first.saveIfChanged(one) } != nil)
    memory.failure = nil
    #expect(try first.saveIfChanged(two))
    // What the last process has saved is on disk too.
    first.close()
    #expect(try !store().saveIfChanged(two))
  }

  @Test(arguments: [0, 1, 65535, 65536, 65537, 200_000])
  func eachByteCounts(size: Int) throws {
    let store = try store()
    var bytes = [UInt8](repeating: 1, count: size)
    #expect(try store.saveIfChanged(bytes))
    for index in [0, 65535, 65536, size - 1] where bytes.indices.contains(index) {
      bytes[index] += 1
      #expect(try store.saveIfChanged(bytes), "\(index)")
      #expect(try !store.saveIfChanged(bytes))
    }
    for other in [bytes + [0], Array(bytes.dropLast())] where other != bytes {
      #expect(try store.saveIfChanged(other))
      #expect(try store.saveIfChanged(bytes))
    }
  }

  // MARK: The environment

  @Test func withoutADirectoryTheErrorSaysWhatToDo() throws {
    func opening(_ variables: [String: String]) -> StateError? {
      error { () throws(StateError) in
        _ = try StateStore(environment: ServiceEnvironment(variables))
      }
    }
    #expect(
      opening([:])?.description
        == "There is no $STATE_DIRECTORY: give the unit a StateDirectory=, or the store a directory."
    )
    guard case .noStateDirectory(let reason?) = opening(["STATE_DIRECTORY": "relative"]) else {
      Issue.record("no error")
      return
    }
    let none = StateError.noStateDirectory(reason)
    #expect("\(none)" == reason.description && none.exitStatus == 73)
  }
}
