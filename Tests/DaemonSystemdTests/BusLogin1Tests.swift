// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusLogin1Tests {
  private let peer = BusPeer()
  private let session: BusSession
  private let heard = BusLog<String>()
  private static let logind = ":1.10"

  init() {
    session = BusSession(.address(peer.address), options: BusTests.options)
    peer.answer = { _ in .reply([.variant(.bool(false))]) }
  }

  private func announce(_ member: String, from sender: String = logind, _ body: [BusValue]) {
    peer.signal(member, of: .logind, from: sender, body)
  }

  /// Until the state of things was read.
  private func follow(_ matter: BusMatter) -> Bool {
    session.note(matter, in: heard)
    session.start()
    return pump(session, peer) { !peer.calls.isEmpty } && settle(session, peer)
  }

  // MARK: Sleep

  @Test func sleepAndWake() {
    #expect(follow(.sleep))
    for asleep in [true, true, false, false, true] { announce("PrepareForSleep", [.bool(asleep)]) }
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all == ["asleep", "awake", "asleep"])
  }

  @Test func sleepThatBeganBefore() {
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    session.note(.sleep, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["asleep"] })
    // It ends while the bus is away.
    peer.answer = { _ in .reply([.variant(.bool(false))]) }
    peer.dropClients()
    #expect(pump(session, peer) { heard.all == ["asleep", "lost", "awake"] })
  }

  /// Any program may send any signal to another one; only the owner of logind's name is believed.
  @Test func signalOfAnImpostorIsNotHeard() {
    #expect(follow(.sleep))
    announce("PrepareForSleep", from: ":1.66", [.bool(true)])
    announce("PrepareForSleep", [.bool(true)])
    announce("PrepareForSleep", from: ":1.66", [.bool(false)])
    #expect(settle(session, peer))
    #expect(heard.all == ["asleep"])
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    peer.setOwner(of: BusObject.logind.destination, to: ":1.77")
    #expect(settle(session, peer))
    announce("PrepareForSleep", [.bool(false)])  // from logind's former connection
    #expect(settle(session, peer))
    #expect(heard.all == ["asleep"])
    announce("PrepareForSleep", from: ":1.77", [.bool(false)])
    #expect(pump(session, peer) { heard.all == ["asleep", "awake"] })
  }

  @Test func newLogindIsAskedAnew() {
    #expect(follow(.sleep))
    peer.answer = { _ in .reply([.variant(.bool(true))]) }
    peer.setOwner(of: BusObject.logind.destination, to: ":1.78")
    #expect(pump(session, peer) { heard.all == ["asleep"] })
  }

  @Test(arguments: [
    [], [BusValue.string("true")], [.variant(.bool(true))], [.array(of: "b", [.bool(true)])],
  ])
  func wrongTypesAreReported(body: [BusValue]) {
    #expect(follow(.sleep))
    announce("PrepareForSleep", body)
    announce("PrepareForSleep", [.bool(true)])
    #expect(pump(session, peer) { heard.all.count == 2 })
    #expect(heard.all == ["malformed", "asleep"])
  }

  // MARK: Shutdown

  @Test(arguments: ["poweroff", "later"])
  func shutdownIsHeardOnce(word: String) {
    #expect(follow(.shutdown))
    announce("PrepareForShutdownWithMetadata", [.bool(true), .properties(["type": .string(word)])])
    announce("PrepareForShutdown", [.bool(true)])
    announce("PrepareForShutdownWithMetadata", [.bool(false), .properties([:])])
    announce("PrepareForShutdown", [.bool(false)])
    announce("PrepareForShutdown", [.bool(true)])  // as an old systemd does
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all == ["shutdown \(word)", "called off", "shutdown somehow"])
  }

  @Test(arguments: [
    [BusValue.bool(true)], [.bool(true), .int32(1)],
    [.bool(true), .properties(["type": .byte(1)])],
  ])
  func shutdownWithoutUsableMetadataCounts(body: [BusValue]) {
    #expect(follow(.shutdown))
    announce("PrepareForShutdownWithMetadata", body)
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["shutdown somehow"])
  }

  // MARK: Inhibitor locks

  @Test func lockIsHeldUntilReleased() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let sent = BusDescriptor(OwnedDescriptor(owning: ends[1]))
    peer.answer = { _ in .reply([.descriptor(sent)]) }
    let locks = session.delayLocks(.shutdown)
    session.start()
    #expect(pump(session, peer) { !locks.all.isEmpty })
    #expect(
      peer.calls.first?.strings
        == ["shutdown", Journal.programName, "Saves its state", "delay"])
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
    session.note(.delayLock(.sleep), in: heard, settledByErrors: true)
    session.start()
    #expect(pump(session, peer) { heard.all == ["accessDenied"] })
  }

  @Test(arguments: [[], [BusValue.uint32(3)], [.string("fd")]])
  func lockThatIsNoneIsMalformed(body: [BusValue]) {
    peer.answer = { _ in .reply(body) }
    session.note(.delayLock(.sleep), in: heard, settledByErrors: true)
    session.start()
    #expect(pump(session, peer) { heard.all == ["malformed"] })
  }

  @Test func theLongestDelayIsRead() {
    peer.answer = { _ in .reply([.variant(.uint64(5_000_000))]) }
    session.note(.delayLimit, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["5.0 seconds"] })
    #expect(peer.calls.first?.strings.last == "InhibitDelayMaxUSec")
  }

  // MARK: The user's session

  @Test func sessionIsFollowed() {
    let user = BusObject(
      destination: BusObject.logind.destination, path: "/org/freedesktop/login1/user/_1000",
      interface: "org.freedesktop.login1.User")
    func object(_ path: String) -> BusObject {
      BusObject(
        destination: BusObject.logind.destination, path: path,
        interface: "org.freedesktop.login1.Session")
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
    session.note(.userSession, in: heard)
    session.start()
    func become(_ state: UserSessionState) -> Bool {
      pump(session, peer) { heard.all.last == "\(state)" }
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
    // What is about other properties is not read.
    let count = peer.calls.count
    peer.changed(user, from: Self.logind, ["State": .string("online")])
    #expect(settle(session, peer) && peer.calls.count == count)
  }

  /// The session that is shown ends before it is read: there is another soon.
  @Test func sessionThatIsGoneIsNoNews() {
    peer.answer = { call in
      call.path.hasSuffix("user/self")
        ? .reply([.properties(["Display": .structure([.string("x"), .objectPath("/s/1")])])])
        : .error("org.freedesktop.DBus.Error.UnknownObject", "gone")
    }
    session.note(.userSession, in: heard)
    session.start()
    #expect(pump(session, peer) { peer.calls.count == 2 })
    #expect(settle(session, peer) && heard.all.isEmpty)
    announce("SessionNew", [.string("1"), .objectPath("/s/1")])
    #expect(pump(session, peer) { peer.calls.count == 4 })
  }

  @Test func serviceOfTheSystemHasNoSession() {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.UnknownObject", "no user") }
    session.note(.userSession, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["other"])
  }
}

/// What the peer's logind says; used by the test's thread only.
private final class BusFacts {
  var display = "/"
  var sessions: [String: (Bool, Bool)] = [:]
}
