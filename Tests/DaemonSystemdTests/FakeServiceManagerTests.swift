// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import Testing

@testable import DaemonSystemd

@Suite struct FakeServiceManagerTests {
  /// Sends bytes as they are, as a daemon without this package could.
  private func send(_ text: String, to manager: FakeServiceManager) throws {
    let name = String(manager.address.dropFirst())
    let sender = try DatagramSocket(to: name, isAbstract: true, purpose: "send")
    try #require(sender.send(Array(text.utf8)) == 0)
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
    #expect(try await manager.next(containing: "STATUS=four").lines == ["STATUS=four"])
    #expect(manager.messages.count == 4)
    async let waited = manager.next(containing: "READY")
    try send("READY=1", to: manager)
    #expect(try await waited["READY"] == "1")
  }

  @Test func aTaskThatIsCancelledWaitsNoLonger() async throws {
    let manager = try FakeServiceManager()
    let waiting = Task { try await manager.next(timeout: .seconds(3600)) }
    waiting.cancel()
    await #expect(throws: SystemdError.self) { try await waiting.value }
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
    try notify.send([.reloading()])
    #expect(manager.service.isReloading)
    try notify.send([.ready, .status("")])
    try notify.send([.watchdog])
    try notify.send([.extendTimeout(.seconds(5)), .custom(name: "X_TEST", value: "1")])
    try notify.send([.stopping])
    try notify.send([.status("Saved"), .watchdog])
    #expect(manager.violations == [])
    let service = manager.service
    #expect(!service.isReloading && service.reloadsBegun == 1 && service.reloadsEnded == 1)
    #expect(service.isStopping && service.statusText == "Saved" && service.watchdogPings == 2)
  }

  private static let mistakes: [([String], String)] = [
    (["RELOADING=1"], "before the first READY=1"),
    (["READY=1", "RELOADING=1"], "without MONOTONIC_USEC= is ignored"),
    (["READY=1", "RELOADING=1\nMONOTONIC_USEC=18446744073709551615"], "in the future"),
    (["STOPPING=1", "READY=1"], "STOPPING=1 was final"),
    (["STOPPING=1", "STOPPING=1"], "STOPPING=1 was final"),
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
    let early = NotifyField.reloading(at: .microseconds(1))
    manager.willRequestReload()
    try notify.send([.ready])
    try notify.send([early])
    #expect(!manager.service.isReloading)
    #expect(manager.violations.count == 1)
    #expect(manager.violations.first?.contains("older than the request") == true)
  }

  // MARK: Store

  @Test func theStoreKeepsWhatSystemdWould() throws {
    let manager = try FakeServiceManager(descriptorStoreLimit: 2)
    let notify = try NotifySocket(address: manager.address)
    let files = try (0..<3).map { try memory("\($0)") }
    defer { for file in files { close(file) } }
    try notify.store(files[0], named: "a", polled: false)
    try notify.store(files[0], named: "again", polled: false)
    try notify.store(files[1], named: "b", polled: false)
    #expect(manager.storedDescriptors.map(\.name) == ["a", "b"])
    #expect(manager.violations == [])
    try notify.store(files[2], named: "c", polled: false)
    #expect(manager.storedDescriptors.map(\.name) == ["a", "b"])
    #expect(manager.violations.first?.contains("is full") == true)
  }

  @Test func aHangUpEmptiesAPolledPlace() throws {
    let manager = try FakeServiceManager()
    let notify = try NotifySocket(address: manager.address)
    for polled in [true, false] {
      var ends: [Int32] = [-1, -1]
      try #require(clinux_pipe(&ends) == 0)
      try notify.store(ends[0], named: "\(polled)", polled: polled)
      #expect(manager.storedDescriptors.last?.polled == polled)
      for end in ends { close(end) }
    }
    #expect(manager.storedDescriptors.map(\.name) == ["false"])
  }
}
