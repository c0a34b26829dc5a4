// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What becomes of messages that can't be sent at once.
@Suite("Notify: the queue", .timeLimit(.minutes(4))) struct NotifySinkTests {
  // MARK: The queue

  @Test func statesStayInOrderAndOfTheRestTheNewestCounts() {
    var queue = NotifyQueue()
    queue.append([.ready, .status("a")])
    for number in 1...1000 {
      queue.append([.watchdog])
      queue.append([.status("\(number)")])
      queue.append([.extendTimeout(.seconds(number))])
    }
    queue.append([.reloading(at: 1), .status("b")])
    queue.append([.ready])
    queue.append([.stopping])
    queue.append([.exitStatus(0), .status("c")])
    queue.append([.watchdog])
    var messages: [[NotifyField]] = []
    while let first = queue.first {
      messages.append(first)
      queue.removeFirst()
    }
    #expect(
      messages == [
        [.ready, .status("a")],
        [.watchdog, .status("1000"), .extendTimeout(.seconds(1000))],
        [.reloading(at: 1), .status("b")], [.ready], [.stopping],
        [.exitStatus(0), .status("c"), .watchdog],
      ])
  }

  // MARK: The sink

  /// A bound socket with as many messages as it takes, which nobody has read yet.
  private struct FullManager: ~Copyable {
    let socket: OwnedDescriptor
    let notify: NotifySocket

    init() throws {
      let name = "full-\(getpid())-\(UInt64.random(in: 0 ... .max))"
      socket = OwnedDescriptor(
        owning: CLinux.socket(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC, 0))
      try #require(clinux_bind_unix(socket.rawValue, name, name.utf8.count, true) == 0)
      notify = try NotifySocket(address: "@" + name)
      do throws(SystemdError) {
        while true { try notify.send([.status("filler")], timeout: .zero) }
      } catch {
        #expect(error == .system("notify the service manager", errno: EAGAIN))
      }
    }

    /// The messages after the filling, up to and with the one that begins with `last`.
    func read(until last: String) async throws -> [String] {
      var messages: [String] = []
      let deadline = MonotonicTime.now().advanced(by: .seconds(120))
      while messages.last?.hasPrefix(last) != true {
        try #require(MonotonicTime.now() < deadline, "read so far: \(messages)")
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(socket.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 0 else {
          try await Task.sleep(for: .milliseconds(5))
          continue
        }
        let text = String(decoding: buffer[..<count], as: UTF8.self)
        if text != "STATUS=filler" { messages.append(text) }
      }
      return messages
    }
  }

  /// By the listening thread.
  @Test func aFullManagerReceivesEverythingInOrder() async throws {
    let manager = try FullManager()
    let log = Log()
    let sink = NotifySink(manager.notify) { log.add($0) }
    let core = LifecycleCore(configuration: LifecycleConfiguration())
    defer { core.close() }
    let send: (LifecycleFact) -> Void = { core.retry(sink, at: sink.receive($0)) }
    let snapshot = LifecycleSnapshot(state: .foreground, reasons: [])
    let cause = LifecycleCause(.api)
    send(.launched(snapshot))
    send(.began(.reload, cause, at: .now()))
    send(.ended(.reload, LifecycleReport(cause: cause, entries: []), .zero, snapshot))
    for _ in 0..<100 { send(.healthy) }
    send(.terminating(cause))
    let messages = try await manager.read(until: "STOPPING=1")
    let first = messages.map { $0.prefix { $0 != "\n" } }.filter { !$0.hasPrefix("STATUS=") }
    #expect(first == ["READY=1", "RELOADING=1", "READY=1", "WATCHDOG=1", "STOPPING=1"])
    #expect(log.all == [])
    // Once all is sent, a new message is sent at once.
    #expect(sink.receive(.healthy) == nil)
    #expect(try await manager.read(until: "WATCHDOG=1") == ["WATCHDOG=1"])
  }

  /// Nobody listens there any more, and nobody is asked again and again.
  @Test func aManagerThatIsGoneIsReportedOnce() throws {
    let notify = try NotifySocket(address: "@gone-\(getpid())-\(UInt64.random(in: 0 ... .max))")
    let log = Log()
    let sink = NotifySink(notify) { log.add($0) }
    for _ in 0..<10 { #expect(sink.receive(.healthy) == nil) }
    #expect(log.all.count == 1 && log.all[0].hasPrefix("systemd was not notified: "), "\(log.all)")
  }
}
