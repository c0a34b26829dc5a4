import CLinux
import Foundation
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusLogin1Tests {
  private let peer = BusPeer()
  private let session: BusSession
  private let login: Login1
  private static let logind = ":1.10"

  init() {
    session = BusSession(.address(peer.address), options: BusTests.options)
    login = Login1(session)
    peer.answer = { _ in .reply([.variant(.bool(false))]) }
    session.start()
  }

  private func announce(_ member: String, from sender: String = logind, _ body: [BusValue]) {
    peer.signal(member, of: Login1.manager, from: sender, body)
  }

  /// Until the watch has read the state of things.
  private func settle(reads: Int = 1) -> Bool {
    let done = BusLog<Bool>()
    guard pump(session, peer, until: { peer.calls.count >= reads }) else { return false }
    session.property("x", of: Login1.manager) { _ in done.append(true) }
    return pump(session, peer) { !done.all.isEmpty }
  }

  // MARK: Sleep

  @Test func sleepAndWake() {
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(settle())
    for asleep in [true, true, false, false, true] { announce("PrepareForSleep", [.bool(asleep)]) }
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all == [.success(true), .success(false), .success(true)])
    watch.cancel()
  }

  @Test func sleepThatBeganBeforeTheWatch() {
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(pump(session, peer) { heard.all == [.success(true)] })
    // It ends while the bus is away.
    peer.answer = { _ in .reply([.variant(.bool(false))]) }
    peer.dropClients()
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all.last == .success(false))
    watch.cancel()
  }

  /// Any program may send any signal to another one; only the owner of logind's name is believed.
  @Test func signalOfAnImpostorIsNotHeard() {
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(settle())
    announce("PrepareForSleep", from: ":1.66", [.bool(true)])
    announce("PrepareForSleep", [.bool(true)])
    announce("PrepareForSleep", from: ":1.66", [.bool(false)])
    #expect(settle())
    #expect(heard.all == [.success(true)])
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    peer.setOwner(of: Login1.service, to: ":1.77")
    #expect(settle())
    announce("PrepareForSleep", [.bool(false)])  // from logind's former connection
    #expect(settle())
    #expect(heard.all == [.success(true)])
    announce("PrepareForSleep", from: ":1.77", [.bool(false)])
    #expect(settle())
    #expect(heard.all == [.success(true), .success(false)])
    watch.cancel()
  }

  @Test func newLogindIsAskedAnew() {
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(settle())
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    peer.setOwner(of: Login1.service, to: ":1.78")
    #expect(pump(session, peer) { heard.all == [.success(true)] })
    watch.cancel()
  }

  @Test(arguments: [
    [], [BusValue.string("true")], [.variant(.bool(true))], [.array(of: "b", [.bool(true)])],
  ])
  func wrongTypesAreReported(body: [BusValue]) {
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(settle())
    announce("PrepareForSleep", body)
    announce("PrepareForSleep", [.bool(true)])
    #expect(pump(session, peer) { heard.all.count == 2 })
    guard case .failure(.malformedReply) = heard.all[0] else {
      Issue.record("\(heard.all)")
      return
    }
    #expect(heard.all[1] == .success(true))
    watch.cancel()
  }

  @Test func cancelledWatchIsSilentAndLetsGoOfItsMatches() {
    let heard = BusLog<Result<Bool, BusError>>()
    let watch = login.watchSleep { heard.append($0) }
    #expect(settle())
    #expect(peer.matches.contains { $0.contains("PrepareForSleep") })
    watch.cancel()
    announce("PrepareForSleep", [.bool(true)])
    #expect(pump(session, peer) { !peer.matches.contains { $0.contains("PrepareForSleep") } })
    #expect(heard.all.isEmpty)
  }

  // MARK: Shutdown

  @Test(arguments: ["poweroff", "later"])
  func shutdownIsHeardOnce(word: String) {
    let heard = BusLog<Result<ShutdownEvent, BusError>>()
    let watch = login.watchShutdown { heard.append($0) }
    #expect(settle())
    announce("PrepareForShutdownWithMetadata", [.bool(true), .properties(["type": .string(word)])])
    announce("PrepareForShutdown", [.bool(true)])
    announce("PrepareForShutdownWithMetadata", [.bool(false), .properties([:])])
    announce("PrepareForShutdown", [.bool(false)])
    announce("PrepareForShutdown", [.bool(true)])  // as an old systemd does
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(
      heard.all == [
        .success(.willShutDown(word)), .success(.calledOff), .success(.willShutDown(nil)),
      ])
    watch.cancel()
  }

  @Test(arguments: [
    [BusValue.bool(true)], [.bool(true), .int32(1)],
    [.bool(true), .properties(["type": .byte(1)])],
  ])
  func shutdownWithoutUsableMetadataCounts(body: [BusValue]) {
    let heard = BusLog<Result<ShutdownEvent, BusError>>()
    let watch = login.watchShutdown { heard.append($0) }
    #expect(settle())
    announce("PrepareForShutdownWithMetadata", body)
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == [.success(.willShutDown(nil))])
    watch.cancel()
  }

  // MARK: Inhibitor locks

  @Test func lockIsHeldUntilReleased() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let sent = BusDescriptor(OwnedDescriptor(owning: ends[1]))
    peer.answer = { _ in .reply([.descriptor(sent)]) }
    let locks = BusLog<BusDescriptor>()
    login.inhibit(.shutdown, who: "w", why: "y") {
      if case .success(let lock) = $0 { locks.append(lock) }
    }
    #expect(pump(session, peer) { !locks.all.isEmpty })
    #expect(peer.calls.first?.strings == ["shutdown", "w", "y", "delay"])
    let lock = try #require(locks.all.first)
    sent.close()
    session.close()
    var logind = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
    #expect(poll(&logind, 1, 0) == 0)
    lock.close()
    lock.close()
    #expect(poll(&logind, 1, 0) == 1)
    close(ends[0])
  }

  @Test func lockIsReleasedWithItsLifetime() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    do { _ = BusDescriptor(OwnedDescriptor(owning: ends[1])) }
    var byte: UInt8 = 0
    #expect(read(ends[0], &byte, 1) == 0)
    close(ends[0])
  }

  @Test func deniedLockSaysSo() {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.AccessDenied", "Permission denied") }
    let errors = BusLog<BusError>()
    login.inhibit(.sleep, who: "w", why: "y") {
      if case .failure(let error) = $0 { errors.append(error) }
    }
    #expect(pump(session, peer) { !errors.all.isEmpty })
    #expect(errors.all[0].isAccessDenied)
  }

  @Test(arguments: [[], [BusValue.uint32(3)], [.string("fd")]])
  func lockThatIsNoneIsMalformed(body: [BusValue]) {
    peer.answer = { _ in .reply(body) }
    let errors = BusLog<BusError>()
    login.inhibit(.sleep, who: "w", why: "y") {
      if case .failure(let error) = $0 { errors.append(error) }
    }
    #expect(pump(session, peer) { !errors.all.isEmpty })
    guard case .malformedReply = errors.all[0] else {
      Issue.record("\(errors.all)")
      return
    }
  }

  @Test func theLongestDelayIsRead() {
    peer.answer = { _ in .reply([.variant(.uint64(5_000_000))]) }
    let delays = BusLog<Result<Duration, BusError>>()
    login.inhibitDelayMax { delays.append($0) }
    #expect(pump(session, peer) { delays.all == [.success(.seconds(5))] })
    #expect(peer.calls.first?.strings.last == "InhibitDelayMaxUSec")
  }

  // MARK: The user's session

  @Test func sessionIsFollowed() {
    let user = BusObject(
      destination: Login1.service, path: "/org/freedesktop/login1/user/_1000",
      interface: "org.freedesktop.login1.User")
    func object(_ path: String) -> BusObject {
      BusObject(
        destination: Login1.service, path: path, interface: "org.freedesktop.login1.Session")
    }
    let facts = BusFacts()
    peer.answer = { call in
      if call.path.hasSuffix("user/self") {
        let display = BusValue.structure([.string("x"), .objectPath(facts.display)])
        return .reply([.properties(["Display": display, "UID": .uint32(1000)])])
      }
      guard let (active, locked) = facts.sessions[call.path] else {
        return .error("org.freedesktop.DBus.Error.UnknownObject", "gone")
      }
      return .reply([.properties(["Active": .bool(active), "LockedHint": .bool(locked)])])
    }
    let heard = BusLog<Result<UserSessionState, BusError>>()
    let watch = login.watchUserSession { heard.append($0) }
    func become(_ state: UserSessionState) -> Bool {
      pump(session, peer) { heard.all.last == .success(state) }
    }
    #expect(become(.none))
    facts.sessions = ["/s/1": (true, false), "/s/2": (false, false)]
    facts.display = "/s/1"
    peer.changed(
      user, from: Self.logind, ["Display": .structure([.string("1"), .objectPath("/s/1")])])
    #expect(become(.active))
    facts.sessions["/s/1"] = (true, true)
    peer.changed(object("/s/1"), from: Self.logind, ["LockedHint": .bool(true)])
    #expect(become(.locked))
    facts.display = "/s/2"
    announce("SessionRemoved", [.string("1"), .objectPath("/s/1")])
    #expect(become(.inactive))
    facts.sessions["/s/2"] = (true, false)
    peer.changed(object("/s/2"), from: Self.logind, [:], invalidated: ["Active"])
    #expect(become(.active))
    facts.sessions = [:]
    facts.display = "/"
    peer.changed(user, from: Self.logind, [:], invalidated: ["Display"])
    #expect(become(.none))
    #expect(heard.all.count == 6)
    watch.cancel()
  }

  @Test func serviceOfTheSystemHasNoSession() {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.UnknownObject", "no user") }
    let heard = BusLog<Result<UserSessionState, BusError>>()
    let watch = login.watchUserSession { heard.append($0) }
    #expect(pump(session, peer) { !heard.all.isEmpty })
    guard case .failure(.call) = heard.all[0] else {
      Issue.record("\(heard.all)")
      return
    }
    watch.cancel()
  }
}

/// What the peer's logind says; used by the test's thread only.
private final class BusFacts {
  var display = "/"
  var sessions: [String: (Bool, Bool)] = [:]
}
