// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
import TestLimits
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

@Suite struct NotifySocketTests {
  private func temporaryPath(_ name: String) -> String {
    "/tmp/notify-\(getpid())-\(UInt32.random(in: 0 ... .max))-\(name)"
  }

  @Test func withoutAManagerNothingIsSentButMistakesShow() throws {
    for address in [nil, ""] {
      let notify = try NotifySocket(address: address)
      #expect(!notify.hasServiceManager)
      try notify.send([.ready])
      try notify.barrier(timeout: .zero)
      #expect(throws: SystemdError.self) { try notify.send([.exitStatus(-1)]) }
    }
  }

  @Test(arguments: [true, false])
  func theBytesArriveExactly(abstract: Bool) async throws {
    let manager = try FakeServiceManager(path: abstract ? nil : temporaryPath("exact"))
    let notify = try NotifySocket(address: manager.address)
    try notify.send([.ready, .status("Grüße")])
    let message = try await manager.next()
    #expect(message.bytes == Array("READY=1\nSTATUS=Grüße".utf8))
    #expect(message.senderPID == getpid())
    #expect(message.descriptorCount == 0)
    #expect(manager.violations == [])
  }

  @Test func anAddressMayHaveTheLongestName() async throws {
    let path = temporaryPath("").padding(to: 107)
    let abstract = "@\(getpid())-".padding(to: 108)
    for manager in [try FakeServiceManager(path: path), try FakeServiceManager(path: abstract)] {
      try NotifySocket(address: manager.address).send([.watchdog])
      #expect(try await manager.next()["WATCHDOG"] == "1")
    }
  }

  @Test(arguments: [
    "relative", "@", " /run/x", "vsock:2:1234", "unix:/run/x", "/run/\0x",
    "/" + String(repeating: "x", count: 107), "@" + String(repeating: "x", count: 108),
  ])
  func aBadAddressIsAnErrorThatNamesTheVariable(address: String) {
    #expect {
      try NotifySocket(address: address)
    } throws: { error in
      guard case .malformedVariable("NOTIFY_SOCKET", address, _)? = error as? SystemdError else {
        return false
      }
      return "\(error)".hasSuffix(".")
    }
  }

  /// As long as there is time; without a timeout it is an error at once.
  @Test func aMomentWithoutMemoryIsWaitedFor() async throws {
    let manager = try FakeServiceManager()
    let notify = try NotifySocket(address: manager.address)
    fail_next_send(ENOBUFS, 2)
    try notify.send([.ready])
    #expect(try await manager.next()["READY"] == "1")
    for timeout in [Duration.zero, .milliseconds(20)] {
      fail_next_send(ENOBUFS, .max)
      defer { fail_next_send(0, 0) }
      #expect {
        try notify.send([.watchdog], timeout: timeout)
      } throws: {
        if case .system(_, ENOBUFS)? = $0 as? SystemdError { true } else { false }
      }
    }
  }

  @Test func nobodyListeningIsAnError() throws {
    let notify = try NotifySocket(address: "@nobody-\(getpid())-\(UInt64.random(in: 0 ... .max))")
    #expect(throws: SystemdError.system(purpose: "notify the service manager", errno: ECONNREFUSED))
    {
      try notify.send([.ready])
    }
  }

  // MARK: The socket that is kept

  /// As after a soft reboot: the address is the same, the socket is another.
  @Test func aManagerThatWasReplacedIsFoundAgain() throws {
    let path = temporaryPath("replaced")
    var manager: FakeServiceManager? = try FakeServiceManager(path: path)
    let notify = try NotifySocket(address: path)
    try notify.send([.ready])
    try notify.barrier(timeout: .seconds(30))
    manager = nil
    // Its own thread closes it.
    let deadline = MonotonicTime.after(.seconds(30))
    while (try? notify.send([.watchdog])) != nil, deadline.milliseconds > 0 { sched_yield() }
    #expect(throws: SystemdError.self) { try notify.send([.watchdog]) }
    #expect(access(path, F_OK) != 0)
    manager = try FakeServiceManager(path: path)
    try notify.send([.stopping])
    try notify.barrier(timeout: .seconds(30))
    #expect(manager?.messages.first?.lines == ["STOPPING=1"])
  }

  /// closefrom(3) in a library, or a second close(2): the number is another file's now, which must not get the message.
  @Test func aNumberThatHasBecomeAnotherFilesIsLeftAlone() throws {
    let manager = try FakeServiceManager()
    var notify: NotifySocket? = try NotifySocket(address: manager.address)
    try notify?.send([.ready])
    let number = try #require(notify?.socket?.number)
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC, 0, &ends) == 0)
    let reader = OwnedDescriptor(owning: ends[0])
    try #require(dup2(ends[1], number) == number)
    close(ends[1])
    try notify?.send([.stopping])
    try notify?.barrier(timeout: .seconds(30))
    #expect(manager.messages.map { $0.lines[0] } == ["READY=1", "STOPPING=1", "BARRIER=1"])
    notify = nil
    var byte: UInt8 = 0
    #expect(recv(reader.rawValue, &byte, 1, Int32(MSG_DONTWAIT)) == -1)
    #expect(clinux_errno() == EAGAIN, "it got nothing, and it is open still")
    close(number)
  }

  // MARK: Waiting

  /// A bound socket that nobody reads.
  private func unreadSocket() throws -> (address: String, number: Int32) {
    let name = "unread-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    let number = socket(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC, 0)
    try #require(clinux_bind_unix(number, name, name.utf8.count, true) == 0)
    return ("@" + name, number)
  }

  private func isTimeout(_ error: any Error) -> Bool {
    if case .timedOut? = error as? SystemdError { true } else { false }
  }

  @Test func aFullQueueIsAnErrorAtOnceOrAfterTheTimeout() async throws {
    let unread = try unreadSocket()
    defer { close(unread.number) }
    let notify = try NotifySocket(address: unread.address)
    let full = SystemdError.system(purpose: "notify the service manager", errno: EAGAIN)
    #expect(throws: full) {
      for _ in 0..<100_000 { try notify.send([.watchdog], timeout: .zero) }
    }
    #expect(
      performing: { try notify.send([.watchdog], timeout: .milliseconds(20)) }, throws: isTimeout)
    let sending = Task.detached { try notify.send([.ready], timeout: .seconds(30)) }
    var last: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 100)
    // Without waiting in it: the sender may need this thread.
    while last != Array("READY=1".utf8) {
      let count = recv(unread.number, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, clinux_errno() == EAGAIN {
        try await Task.sleep(for: .milliseconds(1))
        continue
      }
      try #require(count > 0)
      last = Array(buffer[..<count])
    }
    try await sending.value
  }

  @Test func aBarrierEndsWhenItIsReadAndNotBefore() async throws {
    let manager = try FakeServiceManager()
    let notify = try NotifySocket(address: manager.address)
    try notify.send([.ready])
    try notify.barrier(timeout: .seconds(30))
    #expect(manager.messages.map(\.lines) == [["READY=1"], ["BARRIER=1"]])
    #expect(manager.messages[1].descriptorCount == 1)
    #expect(manager.service.barriers == 1)
    #expect(manager.violations == [])
    let unread = try unreadSocket()
    defer { close(unread.number) }
    #expect(
      performing: {
        try NotifySocket(address: unread.address).barrier(timeout: .milliseconds(20))
      }, throws: isTimeout)
  }

  @Test func noDescriptorIsLeftOpen() async throws {
    let manager = try FakeServiceManager()
    // On a thread with descriptors of its own: those of the process are other tests', too.
    let next = try await withCheckedThrowingContinuation { continuation in
      let spawned = Thread.spawn(named: "descriptors") {
        continuation.resume(
          with: Result {
            guard own_descriptors() == 0 else { throw TestFailure("close_range") }
            let notify = try NotifySocket(address: manager.address)
            return try [1, 2000].map { count in
              for _ in 0..<count {
                try notify.send([.watchdog])
                try notify.barrier(timeout: .seconds(30))
              }
              let next = try memory("probe")
              close(next)
              return next
            }
          })
      }
      if !spawned { continuation.resume(throwing: TestFailure("no thread")) }
    }
    #expect(manager.service.watchdogPings == 2001 && next[0] == next[1])
  }
}

/// A sealed memory file, to be closed by the caller.
func memory(_ text: String) throws -> Int32 {
  try OwnedDescriptor.memory(named: "test", Array(text.utf8)).release()
}

extension String {
  fileprivate func padding(to count: Int) -> String {
    self + String(repeating: "p", count: count - utf8.count)
  }
}
