// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import DaemonSystemd
import Testing

@Suite struct FakeServiceManagerTests {
  /// Sends bytes as they are, as a daemon without this package could.
  private func send(_ text: String, _ descriptors: [Int32] = [], to manager: FakeServiceManager)
    throws
  {
    let sender = OwnedDescriptor(
      owning: socket(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC, 0))
    let name = String(manager.address.dropFirst())
    try #require(clinux_connect_unix(sender.rawValue, name, name.utf8.count, true) == 0)
    let sent = clinux_send_descriptors(
      sender.rawValue, text, text.utf8.count, descriptors, descriptors.count, false)
    try #require(sent == text.utf8.count)
  }

  // MARK: Messages

  @Test func messagesSentBeforeAQuestionAreInItsAnswer() throws {
    let manager = try FakeServiceManager()
    for count in 1...50 {
      try send("WATCHDOG=1", to: manager)
      #expect(manager.messages.count == count)
    }
  }

  @Test func nextReturnsEachMessageOnceAndPassesOverOthers() async throws {
    let manager = try FakeServiceManager()
    try send("STATUS=one", to: manager)
    try send("READY=1\nSTATUS=two", to: manager)
    try send("STATUS=three", to: manager)
    #expect(try await manager.next(containing: "READY")["STATUS"] == "two")
    #expect(try await manager.next()["STATUS"] == "three")
    try send("STATUS=four", to: manager)
    #expect(try await manager.next(containing: "STATUS", "four").lines == ["STATUS=four"])
    #expect(manager.messages.count == 4)
  }

  @Test func nextWaitsForWhatComesLater() async throws {
    let manager = try FakeServiceManager()
    async let waited = manager.next(containing: "READY")
    try send("STATUS=x", to: manager)
    try send("READY=1", to: manager)
    #expect(try await waited["READY"] == "1")
  }

  @Test func nextWorksInSynchronousTestsToo() throws {
    let manager = try FakeServiceManager()
    try send("READY=1", to: manager)
    #expect(try manager.next().lines == ["READY=1"])
    #expect(throws: SystemdError.self) { try manager.next(timeout: .milliseconds(5)) }
  }

  @Test func nextGivesUpAndSaysWhatCame() async throws {
    let manager = try FakeServiceManager()
    try send("STATUS=still here", to: manager)
    await #expect {
      try await manager.next(containing: "READY", timeout: .milliseconds(5))
    } throws: { "\($0)".contains("STATUS=still here") }
  }

  @Test func aChildFindsTheManagerInItsEnvironment() throws {
    let manager = try FakeServiceManager(descriptorStoreLimit: 3)
    #expect(manager.environment == ["NOTIFY_SOCKET": manager.address, "FDSTORE": "3"])
    #expect(try FakeServiceManager(descriptorStoreLimit: 0).environment["FDSTORE"] == nil)
  }

  // MARK: Protocol

  @Test func aGoodLifeHasNoViolations() throws {
    let manager = try FakeServiceManager()
    let notify = try NotifySocket(address: manager.address)
    try notify.send([.ready, .status("Up")])
    #expect(manager.service.isReady)
    manager.willRequestReload()
    try notify.send([.reloadingNow])
    #expect(manager.service.isReloading)
    try notify.send([.ready, .status("")])
    try notify.send([.watchdog])
    try notify.send([.extendTimeout(.seconds(5)), .custom(name: "X_TEST", value: "1")])
    try notify.send([.stopping])
    try notify.send([.status("Saved"), .watchdog])
    #expect(manager.violations == [])
    let service = manager.service
    #expect(!service.isReloading && service.reloadsBegun == 1 && service.reloadsEnded == 1)
    #expect(service.isStopping && service.status == "Saved" && service.watchdogPings == 2)
  }

  private static let mistakes: [([String], String)] = [
    (["RELOADING=1"], "before the first READY=1"),
    (["READY=1", "RELOADING=1"], "without MONOTONIC_USEC= is ignored"),
    (["READY=1", "RELOADING=1\nMONOTONIC_USEC=18446744073709551615"], "in the future"),
    (["READY=1", "RELOADING=1\nMONOTONIC_USEC=x"], "is ignored"),
    (["MONOTONIC_USEC=5"], "ignored without RELOADING=1"),
    (["STOPPING=1", "READY=1"], "STOPPING=1 was final"),
    (["STOPPING=1", "STOPPING=1"], "STOPPING=1 was final"),
    (["READY=1\nSTOPPING=1"], "STOPPING=1 overrides"),
    (["READY=yes"], "only 1 means something"),
    (["NONSENSE=1"], "NONSENSE= is unknown"),
    (["ready"], "has no '='"),
    (["STATUS=a\nSTATUS=b"], "is there twice"),
    (["WATCHDOG=2"], "1 or trigger"),
    (["FDSTORE=1\nFDNAME=x"], "without a descriptor"),
    (["FDNAME=x"], "ignored without FDSTORE=1"),
    (["FDSTOREREMOVE=1"], "ignored without FDNAME="),
    (["FDPOLL=0"], "ignored without FDSTORE=1"),
    (["MAINPIDFD=1"], "exactly one descriptor"),
    (["MAINPIDFDID=7"], "ignored without MAINPID="),
    (["MAINPID=0"], "is no number"),
    (["EXTEND_TIMEOUT_USEC=1s"], "is no number"),
    (["NOTIFYACCESS=everyone"], "none, main, exec or all"),
    (["BARRIER=1"], "must be alone"),
    (["READY=1\0STATUS=x"], "NUL byte"),
    ([String(repeating: "x", count: 4097)], "of 4097 bytes is dropped"),
    ([""], "empty message"),
  ]

  @Test func everyMistakeIsASentence() throws {
    for (messages, part) in FakeServiceManagerTests.mistakes {
      let manager = try FakeServiceManager()
      for message in messages { try send(message, to: manager) }
      let violations = manager.violations
      #expect(violations.contains { $0.contains(part) }, "\(messages): \(violations)")
    }
  }

  @Test func aReloadStampedBeforeItsRequestIsIgnored() throws {
    let manager = try FakeServiceManager()
    let notify = try NotifySocket(address: manager.address)
    let early = NotifyField.reloading(at: 1)
    manager.willRequestReload()
    try notify.send([.ready])
    try notify.send([early])
    #expect(!manager.service.isReloading)
    #expect(manager.violations.count == 1)
    #expect(manager.violations.first?.contains("older than the request") == true)
  }

  @Test func aDroppedMessageChangesNothing() throws {
    let manager = try FakeServiceManager()
    try send("READY=1\nSTATUS=" + String(repeating: "x", count: 5000), to: manager)
    #expect(!manager.service.isReady)
    #expect(manager.messages.first?.fullSize == 5015)
  }

  // MARK: Store

  @Test func theStoreKeepsWhatSystemdWould() throws {
    let manager = try FakeServiceManager(descriptorStoreLimit: 2)
    let store = DescriptorStore(
      notify: try NotifySocket(address: manager.address), limit: manager.descriptorStoreLimit)
    let files = try (0..<3).map { try memory("\($0)") }
    defer { for file in files { close(file) } }
    #expect(try store.store(files[0], named: "a", polled: false) == .sent)
    #expect(try store.store(files[0], named: "again", polled: false) == .sent)
    #expect(try store.store(files[1], named: "b", polled: false) == .sent)
    #expect(manager.storedDescriptors.map(\.name) == ["a", "b"])
    #expect(manager.violations == [])
    try store.store(files[2], named: "c", polled: false)
    #expect(manager.storedDescriptors.map(\.name) == ["a", "b"])
    #expect(manager.violations.first?.contains("is full") == true)
    try store.remove(named: "a")
    #expect(manager.storedDescriptors.map(\.name) == ["b"])
    manager.clearStore()
    #expect(manager.storedDescriptors.isEmpty)
  }

  @Test func aHangUpEmptiesAPolledPlace() throws {
    let manager = try FakeServiceManager()
    let store = DescriptorStore(notify: try NotifySocket(address: manager.address), limit: 9)
    var pair: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &pair) == 0)
    var other: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &other) == 0)
    try store.store(pair[0], named: "polled")
    try store.store(other[0], named: "kept", polled: false)
    #expect(manager.storedDescriptors.map(\.polled) == [true, false])
    close(pair[1])
    close(other[1])
    #expect(manager.storedDescriptors.map(\.name) == ["kept"])
    for number in [pair[0], other[0]] { close(number) }
  }

  @Test func aBadNameIsStoredUnderTheDefault() throws {
    let manager = try FakeServiceManager()
    let file = try memory("x")
    defer { close(file) }
    try send("FDSTORE=1\nFDNAME=a:b", [file], to: manager)
    #expect(manager.storedDescriptors.map(\.name) == ["stored"])
    #expect(manager.violations.count == 1)
  }

  @Test func withoutAStoreNothingIsSent() throws {
    let manager = try FakeServiceManager()
    let without = try DescriptorStore(ServiceEnvironment(["NOTIFY_SOCKET": manager.address]))
    #expect(without.limit == 0)
    #expect(try without.store(0, named: "x") == .noStore)
    #expect(try without.remove(named: "x") == .noStore)
    #expect(manager.messages.isEmpty)
    #expect(throws: SystemdError.self) { try without.store(0, named: "a:b") }
    #expect(try DescriptorStore(ServiceEnvironment(["FDSTORE": "7"])).limit == 0)
    #expect(try DescriptorStore(ServiceEnvironment(manager.environment)).limit == 64)
  }
}
