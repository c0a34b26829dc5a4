import CLinux
import Foundation
import Synchronization
import Testing

@testable import DaemonSystemd

/// A `BusPeer` that works on a thread of its own until `stop()`.
private final class BusPeerThread: Sendable {
  private struct State {
    var address = ""
    var isOver = false
    var orders: [@Sendable (BusPeer) -> Void] = []
  }

  private let state = Mutex(State())
  private let ready = DispatchSemaphore(value: 0)

  init(_ prepare: @escaping @Sendable (BusPeer) -> Void) {
    Foundation.Thread { [self] in
      let peer = BusPeer()
      prepare(peer)
      state.withLock { $0.address = peer.address }
      ready.signal()
      while !state.withLock(\.isOver) {
        for order in state.withLock({ $0.orders.takeAll() }) { order(peer) }
        var waiting = peer.descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        _ = poll(&waiting, nfds_t(waiting.count), 2)
        peer.step()
      }
    }.start()
    ready.wait()
  }

  var bus: SystemBus {
    SystemBus(.address(state.withLock(\.address)), options: BusTests.options)
  }

  /// Has the peer do something on its thread.
  func order(_ body: @escaping @Sendable (BusPeer) -> Void) {
    state.withLock { $0.orders.append(body) }
  }
  func stop() { state.withLock { $0.isOver = true } }
}

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .timeLimit(.minutes(1)))
struct BusSystemBusTests {
  private let unit = BusObject(
    destination: Systemd1.service, path: "/org/freedesktop/systemd1/unit/db_2eservice",
    interface: "org.freedesktop.systemd1.Unit")

  @Test func questionsAreAnswered() async throws {
    let peer = BusPeerThread { peer in
      peer.answer = { call in
        switch call.strings.last {
        case "TimeoutStopUSec": .reply([.variant(.uint64(7_000_000))])
        case "ReloadSignal": .reply([.variant(.int32(1))])
        case "Job": .reply([.variant(.structure([.uint32(0), .objectPath("/")]))])
        default: .error("org.freedesktop.DBus.Error.AccessDenied", "no")
        }
      }
    }
    defer { peer.stop() }
    let bus = peer.bus
    async let timeout = bus.timeoutStop()
    async let signal = bus.reloadSignal()
    #expect(try await timeout == .seconds(7))
    #expect(try await signal == SIGHUP)
    #expect(try await bus.ownJob() == nil)
    await #expect(throws: BusError.self) { try await bus.inhibit(.sleep, who: "w", why: "y") }
  }

  @Test func cancellingEndsTheWait() async throws {
    let asked = BusLog<Bool>()
    let peer = BusPeerThread {
      $0.answer = { _ in
        asked.append(true)
        return .silence
      }
    }
    defer { peer.stop() }
    let bus = peer.bus
    let task = Task { try await bus.timeoutStop() }
    while asked.all.isEmpty, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await bus.timeoutStop()
    }
    await #expect(throws: CancellationError.self) { try await early.value }
  }

  @Test func closeEndsAll() async throws {
    let asked = BusLog<Bool>()
    let peer = BusPeerThread {
      $0.answer = { _ in
        asked.append(true)
        return .silence
      }
    }
    defer { peer.stop() }
    let bus = peer.bus
    let question = Task { try await bus.timeoutStop() }
    let events = Task { for try await _ in bus.sleepEvents() {} }
    while asked.all.count < 2, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
    bus.close()
    await #expect(throws: BusError.closed) { try await question.value }
    try await events.value
    await #expect(throws: BusError.closed) { try await bus.timeoutStop() }
  }

  @Test func withoutLibraryAllIsUnavailable() async {
    var options = BusTests.options
    options.library = "libnowhere.so.0"
    let bus = SystemBus(options: options)
    let isUnavailable: (any Error) -> Bool = {
      if case .unavailable? = $0 as? BusError { true } else { false }
    }
    await #expect(throws: BusError.self) { try await bus.timeoutStop() }
    do {
      for try await _ in bus.sleepEvents() {}
      Issue.record("no error")
    } catch {
      #expect(isUnavailable(error))
    }
  }

  @Test func namesAreCheckedBeforeTheBusIsAsked() async {
    var options = BusTests.options
    options.library = "libnowhere.so.0"
    let bus = SystemBus(options: options)
    do {
      for try await _ in bus.activeState(of: "nginx.servce") {}
      Issue.record("no error")
    } catch {
      guard case .invalidArgument? = error as? BusError else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test func stateGoesOnOverALostBus() async throws {
    let peer = BusPeerThread { peer in
      peer.answer = { call in
        guard call.member == "GetAll" else { return .reply([]) }
        return .reply([
          .properties(["LoadState": .string("loaded"), "ActiveState": .string("active")])
        ])
      }
    }
    defer { peer.stop() }
    var states = peer.bus.activeState(of: "db.service").makeAsyncIterator()
    #expect(try await states.next() == .active)
    let unit = unit
    peer.order { $0.changed(unit, from: ":1.1", ["ActiveState": .string("reloading")]) }
    #expect(try await states.next() == .reloading)
    peer.order { $0.dropClients() }
    #expect(try await states.next() == .active)
  }

  @Test func unknownUnitThrows() async throws {
    let peer = BusPeerThread { peer in
      peer.answer = { call in
        guard call.member == "GetAll" else { return .reply([]) }
        return .reply([
          .properties(["LoadState": .string("not-found"), "ActiveState": .string("inactive")])
        ])
      }
    }
    defer { peer.stop() }
    let states = peer.bus.activeState(of: "db.service")
    await #expect(throws: BusError.noSuchUnit("db.service")) { for try await _ in states {} }
  }

  /// Its thread has every signal blocked, and is gone after `close`.
  @Test func threadTakesNoSignals() async throws {
    let peer = BusPeerThread { $0.answer = { _ in .reply([.variant(.int32(1))]) } }
    defer { peer.stop() }
    let masks = BusLog<UInt64>()
    let bus = peer.bus
    let thread = BusLog<String>()
    _ = try await bus.reloadSignal()
    bus.session.perform { _ in
      let link =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? ""
      let status = (try? String(contentsOfFile: "/proc/\(link)/status", encoding: .utf8)) ?? ""
      for line in status.split(separator: "\n") where line.hasPrefix("SigBlk:") {
        masks.append(UInt64(line.split(separator: "\t")[1], radix: 16) ?? 0)
      }
      thread.append(link)
    }
    while thread.all.isEmpty, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
    // SIGTERM is 15, SIGHUP 1; SIGKILL, SIGSTOP and glibc's own two can't be blocked.
    let wanted: UInt64 = ~(1 << 8 | 1 << 18 | 1 << 31 | 1 << 32)
    #expect(masks.all.map { $0 & wanted } == [wanted])
    bus.close()
    let deadline = BusTime.now().advanced(20_000_000)
    while access("/proc/" + thread.all[0], F_OK) == 0, BusTime.now() < deadline {
      await Task.yield()
    }
    #expect(access("/proc/" + thread.all[0], F_OK) != 0)
  }
}
