import CLinux
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusSystemd1Tests {
  private let peer = BusPeer()
  private let session: BusSession
  private let manager: Systemd1
  private let unit = BusObject(
    destination: Systemd1.service, path: "/org/freedesktop/systemd1/unit/db_2eservice",
    interface: "org.freedesktop.systemd1.Unit")

  init() {
    session = BusSession(.address(peer.address), options: BusTests.options)
    manager = Systemd1(session)
    session.start()
  }

  private static func unitProperties(_ load: String, _ active: String) -> BusPeer.Reaction {
    .reply([
      .properties(["LoadState": .string(load), "ActiveState": .string(active), "Id": .string("x")])
    ])
  }

  // MARK: The own unit

  @Test(arguments: [
    (UInt64(90_000_000), Duration.seconds(90)), (1_500_001, .microseconds(1_500_001)),
  ])
  func timeoutStop(microseconds: UInt64, duration: Duration) {
    peer.answer = { _ in .reply([.variant(.uint64(microseconds))]) }
    let answers = BusLog<Result<Duration?, BusError>>()
    manager.timeoutStop { answers.append($0) }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(answers.all == [.success(duration)])
    #expect(peer.calls[0].path == "/org/freedesktop/systemd1/unit/self")
    #expect(peer.calls[0].strings == ["org.freedesktop.systemd1.Service", "TimeoutStopUSec"])
  }

  @Test func timeoutStopMayBeInfinite() {
    peer.answer = { _ in .reply([.variant(.uint64(.max))]) }
    let answers = BusLog<Result<Duration?, BusError>>()
    manager.timeoutStop { answers.append($0) }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(answers.all == [.success(nil)])
  }

  @Test(arguments: [
    [], [BusValue.uint64(1)], [.variant(.string("1"))], [.variant(.uint64(1)), .byte(1)],
  ])
  func wrongTypesAreMalformed(body: [BusValue]) {
    peer.answer = { _ in .reply(body) }
    let errors = BusLog<BusError>()
    manager.timeoutStop { if case .failure(let error) = $0 { errors.append(error) } }
    manager.ownJob { if case .failure(let error) = $0 { errors.append(error) } }
    #expect(pump(session, peer) { errors.all.count == 2 })
    for error in errors.all {
      if case .malformedReply = error { continue }
      Issue.record("\(error)")
    }
  }

  @Test func hangingManagerTimesOutAndHoldsNothingUp() {
    let heard = BusLog<BusError>()
    session.call(
      Systemd1.ownService.properties.method("Get"),
      arguments: [Systemd1.ownService.interface, "TimeoutStopUSec"], timeout: .milliseconds(20)
    ) {
      if case .failure(let error) = $0 { heard.append(error) }
    }
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == [.timedOut(method: "org.freedesktop.DBus.Properties.Get")])
  }

  @Test(arguments: [
    ("restart", UnitJob.restart), ("stop", .stop), ("verify-active", .other("verify-active")),
  ])
  func ownJob(word: String, job: UnitJob) {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([
          .variant(.structure([.uint32(7), .objectPath("/org/freedesktop/systemd1/job/7")]))
        ])
        : .reply([.variant(.string(word))])
    }
    let answers = BusLog<Result<UnitJob?, BusError>>()
    manager.ownJob { answers.append($0) }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(answers.all == [.success(job)])
    #expect(peer.calls[1].path == "/org/freedesktop/systemd1/job/7")
  }

  @Test func noJob() {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([.variant(.structure([.uint32(0), .objectPath("/")]))]) : .silence
    }
    let answers = BusLog<Result<UnitJob?, BusError>>()
    manager.ownJob { answers.append($0) }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(answers.all == [.success(nil)])
  }

  @Test func jobThatIsOverMeanwhile() {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([
          .variant(.structure([.uint32(7), .objectPath("/org/freedesktop/systemd1/job/7")]))
        ])
        : .error("org.freedesktop.DBus.Error.UnknownObject", "gone")
    }
    let answers = BusLog<Result<UnitJob?, BusError>>()
    manager.ownJob { answers.append($0) }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(answers.all == [.success(nil)])
  }

  // MARK: Other units

  @Test func statesWithoutRepeats() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    let heard = BusLog<Result<String, BusError>>()
    let watch = manager.watchActiveState(of: try UnitName("db.service")) { heard.append($0) }
    #expect(pump(session, peer) { heard.all == [.success("active")] })
    #expect(peer.calls.map(\.member) == ["Subscribe", "GetAll"])
    for word in ["active", "deactivating", "deactivating", "inactive", "inactive", "novel"] {
      peer.changed(unit, from: ":1.1", ["ActiveState": .string(word), "SubState": .string("x")])
    }
    peer.changed(unit, from: ":1.1", ["SubState": .string("y")])
    #expect(pump(session, peer) { heard.all.count == 4 })
    #expect(heard.all == ["active", "deactivating", "inactive", "novel"].map { .success($0) })
    peer.changed(unit, from: ":1.1", [:], invalidated: ["ActiveState"])
    #expect(pump(session, peer) { heard.all.count == 5 })
    #expect(heard.all.last == .success("active"))
    watch.cancel()
  }

  @Test func stateSurvivesTheBus() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    let heard = BusLog<Result<String, BusError>>()
    let watch = manager.watchActiveState(of: try UnitName("db.service")) { heard.append($0) }
    #expect(pump(session, peer) { heard.all.count == 1 })
    // A unit that was there and is unloaded is inactive, not mistyped.
    peer.answer = {
      $0.member == "GetAll" ? Self.unitProperties("not-found", "inactive") : .reply([])
    }
    peer.dropClients()
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(
      heard.all == [
        .success("active"), .failure(.disconnected(errno: ECONNRESET)), .success("inactive"),
      ])
    watch.cancel()
  }

  @Test func unknownUnitIsAnError() throws {
    peer.answer = {
      $0.member == "GetAll" ? Self.unitProperties("not-found", "inactive") : .reply([])
    }
    let heard = BusLog<Result<String, BusError>>()
    let watch = manager.watchActiveState(of: try UnitName("db.service")) { heard.append($0) }
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == [.failure(.noSuchUnit("db.service"))])
    watch.cancel()
  }

  @Test(arguments: [
    [BusValue.string("x")], [.properties([:])],
    [.properties(["LoadState": .byte(1), "ActiveState": .byte(2)])],
  ])
  func malformedUnit(body: [BusValue]) throws {
    peer.answer = { $0.member == "GetAll" ? .reply(body) : .reply([]) }
    let heard = BusLog<Result<String, BusError>>()
    let watch = manager.watchActiveState(of: try UnitName("db.service")) { heard.append($0) }
    #expect(pump(session, peer) { !heard.all.isEmpty })
    guard case .failure(.malformedReply) = heard.all[0] else {
      Issue.record("\(heard.all)")
      return
    }
    watch.cancel()
  }

  /// What is watched and asked holds the connection's callbacks, never the session.
  @Test func watchesDoNotKeepTheSession() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .silence }
    let heard = BusLog<Result<String, BusError>>()
    weak var gone: BusSession?
    var watches: [BusWatch] = []
    do {
      let session = BusSession(.address(peer.address), options: BusTests.options)
      gone = session
      session.start()
      Systemd1(session).ownJob { _ in }
      watches = [
        Systemd1(session).watchActiveState(of: try UnitName("db.service")) { heard.append($0) },
        Login1(session).watchUserSession { _ in }, Login1(session).watchSleep { _ in },
        Login1(session).watchShutdown { _ in },
      ]
      #expect(pump(session, peer) { !heard.all.isEmpty })
    }
    #expect(gone == nil)
    #expect(heard.all.last == .failure(.closed))
    for watch in watches { watch.cancel() }
  }
}
