// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonSystemd

/// Two runs of a service, without one.
@Suite(.offThePool) struct PreservationTests {
  private let manager: FakeServiceManager

  init() throws { manager = try FakeServiceManager(descriptorStoreLimit: 4) }

  /// What a run of the service has.
  private func run(passing sockets: [(Int32, String)] = []) throws -> Preservation {
    var passed: [(Int32, String)] = sockets
    let stored = try manager.storedDuplicates()
    passed += stored.descriptions.map { ($0.number, $0.name) }
    return try withExtendedLifetime(stored) {
      try Preservation(ServiceEnvironment(manager.environment)) { () throws(SystemdError) in
        try PassedDescriptors(duplicating: passed.map { (number: $0.0, name: $0.1) })
      }
    }
  }

  /// Both ends of a connection, until it is let go of.
  private final class Pair {
    let ours: Int32
    let theirs: Int32

    init() throws {
      var ends: [Int32] = [-1, -1]
      try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &ends) == 0)
      (ours, theirs) = (ends[0], ends[1])
    }

    deinit {
      close(ours)
      close(theirs)
    }
  }

  private func listener() throws -> OwnedDescriptor {
    let number = socket(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0)
    let name = "preservation-\(getpid())-\(UInt64.random(in: .min ... .max))"
    try #require(clinux_bind_unix(number, name, name.utf8.count, true) == 0)
    try #require(listen(number, 1) == 0)
    return OwnedDescriptor(owning: number)
  }

  /// Whether there was one; it is closed.
  private func exists(_ descriptor: consuming OwnedDescriptor?) -> Bool {
    switch consume descriptor {
    case .some: true
    case .none: false
    }
  }

  // MARK: From one run to the next

  @Test func aConnectionAndBytesAreThereInTheNextRun() throws {
    let pair = try Pair()
    let first = try run()
    try first.preserve(pair.ours, named: "c1")
    try first.preserve([1, 2, 3], named: "state")
    try first.barrier()
    #expect(manager.service.barriers == 1)

    let second = try run()
    #expect(second.names() == ["c1", "state"] && second.names(prefix: "c") == ["c1"])
    let peer = try second.preserved(named: "c1", as: .stream)
    switch consume peer {
    case .some(let peer):
      #expect(send(peer.rawValue, "x", 1, 0) == 1)
      var byte: UInt8 = 0
      #expect(recv(pair.theirs, &byte, 1, 0) == 1 && byte == UInt8(ascii: "x"))
    case .none: Issue.record("no connection")
    }
    #expect(try second.preservedBytes(named: "state") == [1, 2, 3])
    #expect(try second.preservedBytes(named: "state") == nil)
    #expect(try second.closeUnknown() == [])
    #expect(manager.violations == [])
    withExtendedLifetime(pair) {}
  }

  /// Found by a reading: systemd reads them as escapes, and stored another name, or dropped the message.
  @Test(arguments: [#"my\x2dapp.socket"#, #"x\"#])
  func aNameMayHaveBackslashes(_ name: String) throws {
    try run().preserve([1], named: name)
    let second = try run()
    #expect(second.names() == [name])
    #expect(try second.preservedBytes(named: name) == [1])
    try second.forget(named: name)
    #expect(manager.storedDescriptors.isEmpty && manager.violations == [])
  }

  @Test func aDescriptorThatIsNotOpenIsNamed() throws {
    let run = try run()
    #expect(throws: SystemdError.system(purpose: "store descriptor -7 as \"c1\"", errno: EBADF)) {
      try run.preserve(-7, named: "c1")
    }
    #expect(run.room == run.limit)
  }

  @Test func newBytesReplaceTheOld() throws {
    let first = try run()
    for round in 0..<10 as Range<UInt8> { try first.preserve([round], named: "state") }
    #expect(manager.storedDescriptors.count == 1)
    #expect(try run().preservedBytes(named: "state") == [9])
    #expect(first.room == 3)
  }

  @Test func whatNobodyKnowsIsClosedAndForgotten() throws {
    let pair = try Pair()
    let first = try run()
    try first.preserve(pair.ours, named: "c1")
    try first.preserve([1], named: "old")
    let second = try run()
    let had = exists(try second.preserved(named: "c1", as: .stream))
    #expect(had)
    #expect(try second.closeUnknown() == ["old"])
    #expect(manager.storedDescriptors.map(\.name) == ["c1"])
    #expect(second.room == 3)
    withExtendedLifetime(pair) {}
  }

  /// The manager forgets names: the one in use must stay.
  @Test func theRestOfANameInUseIsNotForgotten() throws {
    let pair = try Pair()
    let first = try run()
    try first.preserve(pair.ours, named: "c")
    try first.preserve(pair.theirs, named: "c")
    let second = try run()
    let had = exists(try second.preserved(named: "c", as: .stream))
    #expect(had)
    #expect(try second.closeUnknown() == ["c"])
    #expect(manager.storedDescriptors.count == 2 && second.room == 2)
    withExtendedLifetime(pair) {}
  }

  /// What another version has left under the name is closed, and does not take what is new along.
  @Test func whatThisRunHasPreservedStays() throws {
    let pair = try Pair()
    let first = try run()
    try first.preserve(pair.ours, named: "listener")
    try first.preserve([1], named: "state")
    let second = try run()
    try second.preserve(pair.theirs, named: "listener")
    try second.preserve([2], named: "state")
    #expect(try second.closeUnknown() == ["listener", "state"])
    #expect(try run().preservedBytes(named: "state") == [2])
    #expect(manager.storedDescriptors.map(\.name).sorted() == ["listener", "listener", "state"])
    withExtendedLifetime(pair) {}
  }

  // MARK: What is not as expected

  @Test func aWrongKindSaysWhatItIsAndStays() throws {
    let pair = try Pair()
    try run().preserve(pair.ours, named: "c1")
    let second = try run()
    let error = SystemdError.wrongKind(
      name: "c1", expected: .listeningStream, found: "stream connection")
    #expect(throws: error) { _ = exists(try second.preserved(named: "c1", as: .listeningStream)) }
    #expect(
      "\(error)"
        == "The descriptor \"c1\" is a stream connection and not a listening stream socket. It was not taken."
    )
    #expect(throws: SystemdError.self) { try second.preservedBytes(named: "c1") }
    let had = exists(try second.preserved(named: "c1", as: .any))
    #expect(had)
    withExtendedLifetime(pair) {}
  }

  @Test func bytesOverTheLimitStay() throws {
    try run().preserve([UInt8](repeating: 7, count: 100), named: "state")
    let second = try run()
    #expect(throws: SystemdError.self) { try second.preservedBytes(named: "state", limit: 99) }
    #expect(try second.preservedBytes(named: "state", limit: 100)?.count == 100)
    let third = try run()
    #expect(throws: SystemdError.self) { try third.preservedBytes(named: "state", limit: 99) }
    #expect(try third.closeUnknown() == ["state"])
    #expect(try run().names() == [], "what is unknown is forgotten")
  }

  @Test func aMemoryFileIsFixedAndReadFromItsBeginning() throws {
    let file = try OwnedDescriptor.memory(named: "state", Array("state".utf8))
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(read(file.rawValue, &buffer, 10) == 5)
    #expect(pwrite(file.rawValue, "x", 1, 0) == -1 && ftruncate(file.rawValue, 0) == -1)
    #expect(clinux_descriptor_flags(file.rawValue) == FD_CLOEXEC)
    #expect(try file.memoryBytes() == Array("state".utf8))
    #expect(throws: SystemdError.self) { try OwnedDescriptor.emptyMemory(named: "x").memoryBytes() }
  }

  @Test func aLargeStateWithTheLongestNameComesBackWhole() throws {
    let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let name = String(repeating: "x", count: 255)
    try run().preserve(bytes, named: name)
    #expect(try run().preservedBytes(named: name) == bytes)
  }

  // MARK: Places

  @Test func oneTooManyIsAnErrorAndNotADrop() throws {
    let first = try run()
    let files = try (0..<4).map { index in
      let file = try OwnedDescriptor.memory(named: "\(index)", [UInt8(index)])
      try first.preserve(file.rawValue, named: "f\(index)", polled: false)
      return file.release()
    }
    defer { for file in files { close(file) } }
    #expect(first.room == 0)
    #expect(throws: SystemdError.storeFull(name: "state", limit: 4)) {
      try first.preserve([1], named: "state")
    }
    // In place of one there is room, and after one was forgotten.
    try first.preserve([1], named: "f0")
    try first.forget(named: "f1")
    try first.preserve([1], named: "state")
    #expect(manager.storedDescriptors.count == 4)
    #expect(manager.violations == [], "nothing was dropped")
    // The next run knows how many there are.
    let second = try run()
    #expect(second.room == 0)
    #expect(throws: SystemdError.storeFull(name: "c1", limit: 4)) {
      try second.preserve(files[0], named: "c1")
    }
  }

  @Test func aSocketUnitsSocketNeedsNoPlace() throws {
    let listener = try listener()
    let first = try run(passing: [(listener.rawValue, "listener")])
    #expect(first.room == 4)
    // The daemon's own is counted once it is preserved, again.
    try first.preserve(listener.rawValue, named: "own")
    #expect(first.room == 3)
    let had = exists(try first.preserved(named: "listener", as: .listeningStream))
    #expect(had)
  }

  // MARK: Without a store

  @Test(arguments: [[:], ["NOTIFY_SOCKET": "@nobody-listens-here"]])
  func withoutAStoreEverythingWorks(_ variables: [String: String]) throws {
    let preservation = try Preservation(ServiceEnvironment(variables))
    #expect(preservation.limit == 0 && preservation.room == 0 && preservation.names() == [])
    try preservation.preserve(0, named: "c1")
    try preservation.preserve([1], named: "state")
    try preservation.forget(named: "c1")
    try preservation.barrier()
    #expect(try preservation.preservedBytes(named: "state") == nil)
    #expect(try preservation.closeUnknown() == [])
    // A mistake shows all the same.
    #expect(throws: SystemdError.self) { try preservation.preserve(0, named: "a:b") }
    #expect(throws: SystemdError.self) { try preservation.preserve([], named: "") }
  }
}
