// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusConnectionTests {
  private let peer = BusPeer()
  private let log = Log()
  private static let one = BusPeer.Reaction.reply([.variant(.uint64(1))])
  private static let away = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has this name")
  private static let systemd = BusService.systemd.rawValue

  /// A query for a number, whose replies and errors are noted.
  private func number(
    _ property: String, _ service: BusService = .systemd, isOnDemand: Bool = false,
    signal: String? = nil
  ) -> BusRequest {
    BusRequest(
      service, matches: signal.map { [BusMatch($0, of: "/a", "a.b", service)] } ?? [],
      isOnDemand: isOnDemand, query: .get(property, of: "/a", "Service", service)
    ) { [log] event in
      switch event {
      case .reply(let values, _):
        guard case .variant(.uint64(let number))? = values.only else { return .malformed }
        log.add("\(property) \(number)")
        return .done
      case .failure(let error, let call):
        log.add(
          "\(property) \(error.description.contains("unexpected type") ? "malformed" : "\(error.kind)")"
        )
        return call == nil ? .done : .again
      case .signal(let values):
        if case .uint64(let number)? = values.only { log.add("signal \(number)") }
        return values.isEmpty ? .malformed : .done
      }
    }
  }

  /// As where other code of the process has closed the set that it is polled with: it is said, and tried less and less often.
  @Test func aSocketThatCannotBePolledIsGivenUp() throws {
    let connection = try connection(number("A")) {
      $0.firstDelay = .seconds(100)
      $0.longestDelay = .seconds(100)
    }
    connection.process()
    let other = clinux_open("/dev/null", O_RDONLY | O_CLOEXEC)
    #expect(dup2(other, connection.fileDescriptor) >= 0)
    close(other)
    #expect(pump(connection, peer) { !log.all.isEmpty })
    #expect(log.all == ["A unavailable"] && connection.deadline > .now())
  }

  private func connection(
    _ requests: BusRequest..., change: (inout BusConnection.Options) -> Void = { _ in }
  ) throws -> BusConnection {
    var options = BusTests.options
    change(&options)
    let connection = BusConnection(.address(peer.address), requests, options: options)
    try connection.start()
    return connection
  }

  // MARK: Connecting

  @Test func absentLibraryIsReportedOnce() throws {
    let reasons = Log()
    let request = BusRequest(.systemd, query: .get("A", of: "/a", "B", .systemd)) { event in
      if case .failure(let error, nil) = event { reasons.add(error.description) }
      return .done
    }
    let connection = try connection(request, number("Job", isOnDemand: true)) {
      $0.library = "libnowhere.so.0"
    }
    connection.sendOnDemand()
    #expect(pump(connection, nil) { !log.all.isEmpty })
    #expect(log.all == ["Job unavailable"])
    #expect(reasons.all.count == 1 && reasons.all[0].contains("libnowhere.so.0"))
    // Nothing is tried again: the descriptor stays quiet.
    connection.process()
    #expect(!BusTests.isHungUp(connection.fileDescriptor) && connection.deadline == .distantFuture)
    #expect(throws: BusError.self) { try SDBus.load("libc.so.6") }
  }

  @Test func missingSocketIsReportedOnceAndTriedAgain() throws {
    peer.stop()
    unlink(peer.path)
    peer.answer = { _ in Self.one }
    let connection = try connection(number("A"))
    #expect(pump(connection, peer) { !log.all.isEmpty })
    peer.listen()
    #expect(pump(connection, peer) { log.all.count > 1 })
    #expect(log.all == ["A unavailable", "A 1"])
  }

  @Test(arguments: [BusPeer.Manner.hangsUpAtOnce, .hangsUpAfterAuthentication])
  func refusalIsUnavailable(manner: BusPeer.Manner) throws {
    peer.manner = manner
    peer.answer = { _ in Self.one }
    let connection = try connection(number("A"))
    #expect(pump(connection, peer) { peer.connectionCount >= 4 })
    #expect(log.all == ["A unavailable"])
    peer.manner = .welcomes
    #expect(pump(connection, peer) { log.all == ["A unavailable", "A 1"] })
  }

  /// Each attempt waits twice as long as the one before: a slow machine only makes fewer.
  @Test func aBusThatHangsUpIsTriedLessAndLessOften() throws {
    peer.manner = .hangsUpAtOnce
    let start = MonotonicTime.now()
    let connection = try connection(number("A")) { options in
      options.firstDelay = .milliseconds(40)
      options.longestDelay = .seconds(3600)
    }
    for _ in 0..<3 {
      let count = peer.connectionCount
      #expect(pump(connection, peer) { peer.connectionCount > count })
    }
    #expect(peer.connectionCount == 3 && start.duration(to: .now()) >= .milliseconds(120))
  }

  /// Without a delay it would never rest.
  @Test func aDelayOfZeroIsADelay() throws {
    peer.stop()
    unlink(peer.path)
    let quick = try connection(number("A")) { ($0.firstDelay, $0.longestDelay) = (.zero, .zero) }
    #expect(pump(quick, peer) { !log.all.isEmpty })
    let second = quick.deadline
    #expect(pump(quick, peer) { quick.deadline != second })
    #expect(second.duration(to: quick.deadline) >= .milliseconds(1))
  }

  @Test func lostAndBack() throws {
    let connection = try connection(number("A"), number("Job", isOnDemand: true))
    connection.sendOnDemand()
    let descriptor = connection.fileDescriptor
    #expect(pump(connection, peer) { peer.calls.count == 2 })
    peer.dropClients()
    #expect(pump(connection, peer) { peer.calls.count == 3 })
    #expect(
      log.all == ["A unavailable", "Job unavailable"] && connection.fileDescriptor == descriptor)
    // What is sent on demand is sent once.
    #expect(peer.calls.map(\.strings.last) == ["A", "Job", "A"])
  }

  // MARK: Queries

  @Test func sentUntilAnsweredAndNotAgain() throws {
    var refusals = 5
    peer.answer = { _ in
      refusals -= 1
      return refusals >= 0 ? Self.away : Self.one
    }
    let connection = try connection(number("A"))
    #expect(pump(connection, peer) { log.all.last == "A 1" })
    let end = MonotonicTime.after(.milliseconds(50))
    #expect(pump(connection, peer) { MonotonicTime.now() >= end })
    #expect(peer.calls.count == 6)
  }

  /// The next attempt would be in an hour.
  @Test func sentAtOnceWhenTheServiceHasANewOwner() throws {
    peer.answer = { _ in Self.away }
    let connection = try connection(number("A"), number("Job", isOnDemand: true)) {
      $0.firstDelay = .seconds(3600)
    }
    #expect(pump(connection, peer) { log.all.count == 1 })
    #expect(settle(connection, peer) && peer.calls.count == 1)
    peer.answer = { _ in Self.one }
    peer.setOwner(of: Self.systemd, to: ":1.7")
    #expect(pump(connection, peer) { log.all.count == 2 })
    // The answer of a manager that was re-executed may be another one.
    peer.setOwner(of: Self.systemd, to: ":1.8")
    #expect(pump(connection, peer) { log.all.count == 3 })
    // A service that has only gone has nothing to answer.
    peer.setOwner(of: Self.systemd, to: "")
    #expect(settle(connection, peer) && peer.calls.count == 3)
    #expect(peer.calls.allSatisfy { $0.strings.last == "A" })
  }

  @Test func aNewOwnerOutdatesAnAnswerThatIsAwaited() throws {
    peer.answer = { _ in .silence }
    let connection = try connection(number("A"), number("B", .logind))
    #expect(pump(connection, peer) { peer.calls.count == 2 })
    peer.setOwner(of: Self.systemd, to: ":1.7")
    #expect(settle(connection, peer) && peer.calls.count == 2)
    // The answer to the first call comes late.
    peer.answer = { _ in Self.one }
    peer.reply(Self.one, to: peer.calls[0])
    #expect(pump(connection, peer) { log.all == ["A 1", "A 1"] })
    #expect(peer.calls.last?.strings.last == "A")
    #expect(settle(connection, peer) && peer.calls.count == 3)
  }

  @Test func errorsKeepTheirNames() throws {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.AccessDenied", "no\n\u{1b}[2J") }
    let request = BusRequest(.systemd, query: .get("A", of: "/a", "B", .systemd)) { [log] event in
      if case .failure(let error, _) = event { log.add("\(error.kind): \(error.description)") }
      return .done
    }
    let connection = try connection(request)
    #expect(pump(connection, peer) { !log.all.isEmpty })
    #expect(
      log.all == [
        "accessDenied: A was answered with org.freedesktop.DBus.Error.AccessDenied: no\\n\\u{1b}[2J"
      ])
  }

  // MARK: Signals

  /// Any program may send any signal to another one; only the owner of the service's name is believed.
  @Test func anImpostorsSignalIsIgnored() throws {
    peer.answer = { _ in Self.one }
    let connection = try connection(number("A", signal: "S"))
    #expect(pump(connection, peer) { log.all == ["A 1"] })
    let object = BusObject(destination: Self.systemd, path: "/a", interface: "a.b")
    for sender in [":1.66", ":1.1"] { peer.signal("S", of: object, from: sender, [.uint64(2)]) }
    peer.setOwner(of: Self.systemd, to: ":1.77")
    peer.signal("S", of: object, from: ":1.1", [.uint64(3)])  // from the former owner
    peer.signal("S", of: object, from: ":1.77", [.uint64(4)])
    peer.signal("S", of: object, from: ":1.77", [])
    #expect(pump(connection, peer) { log.all.contains("A malformed") })
    #expect(log.all.filter { $0 != "A 1" } == ["signal 2", "signal 4", "A malformed"])
  }

  @Test func manySignalsLeaveTimeForOtherWork() throws {
    peer.answer = { _ in Self.one }
    let connection = try connection(number("A", signal: "S")) { $0.stepsAtOnce = 4 }
    #expect(pump(connection, peer) { !log.all.isEmpty } && settle(connection, peer))
    let object = BusObject(destination: Self.systemd, path: "/a", interface: "a.b")
    for number in 0..<50 {
      peer.signal("S", of: object, from: ":1.1", [.uint64(UInt64(number))])
    }
    connection.process()
    #expect(log.all.count <= 5)
    #expect(pump(connection, nil) { log.all.count == 51 })
    #expect(log.all.dropFirst() == (0..<50).map { "signal \($0)" }[...])
  }

  // MARK: Ending

  @Test func nothingArrivesAfterTheEnd() throws {
    let connection = try connection(number("A"), number("Job", isOnDemand: true))
    connection.sendOnDemand()
    #expect(pump(connection, peer) { peer.calls.count == 2 })
    connection.close()
    connection.close()
    connection.sendOnDemand()
    connection.process()
    #expect(log.all.isEmpty && connection.fileDescriptor == -1)
    #expect(pump(connection, peer) { !peer.hasClients })
  }

  /// Requests never retain their connection.
  @Test func aReleasedConnectionIsClosed() throws {
    weak var gone: BusConnection?
    do {
      let connection = try connection(number("A", signal: "S"), number("B", .logind))
      gone = connection
      #expect(pump(connection, peer) { peer.calls.count == 2 })
    }
    #expect(gone == nil && log.all.isEmpty)
    #expect(pump(BusConnection(.address(peer.address), []), peer) { !peer.hasClients })
  }

  // MARK: Times

  @Test func timesSaturate() {
    #expect(MonotonicTime(microseconds: .max).advanced(by: .seconds(5)) == .distantFuture)
    #expect(MonotonicTime(microseconds: 7).microseconds == 7)
    #expect(MonotonicTime.after(.seconds(-1)).milliseconds == 0)
    #expect(MonotonicTime.distantFuture.milliseconds == .max)
  }
}
