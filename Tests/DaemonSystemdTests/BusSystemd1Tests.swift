// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusSystemd1Tests {
  private let peer = BusPeer()
  private let session: BusSession
  private let heard = BusLog<String>()
  private let unit = BusObject(
    destination: BusObject.systemd.destination,
    path: "/org/freedesktop/systemd1/unit/db_2eservice",
    interface: "org.freedesktop.systemd1.Unit")

  init() { session = BusSession(.address(peer.address), options: BusTests.options) }

  private static func unitProperties(_ load: String, _ active: String) -> BusPeer.Reaction {
    .reply([
      .properties(["LoadState": .string(load), "ActiveState": .string(active), "Id": .string("x")])
    ])
  }

  private func followUnit() throws {
    session.note(.activeState(try UnitName("db.service")), in: heard)
    session.start()
  }

  private func askForJob() {
    let job = session.note(.unitJob, in: heard)
    session.start()
    session.ask(job)
  }

  // MARK: The own unit

  @Test(arguments: [
    (UInt64(90_000_000), "90.0 seconds"), (1_500_001, "1.500001 seconds"), (.max, "infinity"),
  ])
  func timeoutStop(microseconds: UInt64, duration: String) {
    peer.answer = { _ in .reply([.variant(.uint64(microseconds))]) }
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == [duration])
    #expect(peer.calls[0].path == "/org/freedesktop/systemd1/unit/self")
    #expect(peer.calls[0].strings == ["org.freedesktop.systemd1.Service", "TimeoutStopUSec"])
  }

  @Test(arguments: [
    [], [BusValue.uint64(1)], [.variant(.string("1"))], [.variant(.uint64(1)), .byte(1)],
  ])
  func wrongTypesAreMalformed(body: [BusValue]) {
    peer.answer = { _ in .reply(body) }
    session.note(.stopTimeout, in: heard, settledByErrors: true)
    askForJob()
    #expect(pump(session, peer) { heard.all.count == 2 })
    #expect(heard.all == ["malformed", "malformed"])
  }

  @Test(arguments: ["restart", "stop", "verify-active"]) func unitJob(word: String) {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([
          .variant(.structure([.uint32(7), .objectPath("/org/freedesktop/systemd1/job/7")]))
        ])
        : .reply([.variant(.string(word))])
    }
    askForJob()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == [word])
    #expect(peer.calls[1].path == "/org/freedesktop/systemd1/job/7")
    #expect(peer.calls[1].strings == ["org.freedesktop.systemd1.Job", "JobType"])
  }

  @Test func noJob() {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([.variant(.structure([.uint32(0), .objectPath("/")]))]) : .silence
    }
    askForJob()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["no job"])
  }

  @Test func jobThatIsOverMeanwhile() {
    peer.answer = { call in
      call.strings.last == "Job"
        ? .reply([
          .variant(.structure([.uint32(7), .objectPath("/org/freedesktop/systemd1/job/7")]))
        ])
        : .error("org.freedesktop.DBus.Error.UnknownObject", "gone")
    }
    askForJob()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["no job"])
  }

  /// It is asked for when it matters, and not before.
  @Test func jobIsNotAskedForByItself() {
    peer.answer = { _ in .reply([.variant(.uint64(1))]) }
    session.note(.unitJob, in: heard)
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    peer.setOwner(of: BusObject.systemd.destination, to: ":1.7")
    #expect(settle(session, peer))
    #expect(peer.calls.allSatisfy { $0.strings.last == "TimeoutStopUSec" })
  }

  // MARK: Other units

  @Test func stateAndChangesWithoutRepeats() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    try followUnit()
    #expect(pump(session, peer) { heard.all == ["active"] })
    #expect(peer.calls.map(\.member) == ["Subscribe", "GetAll"])
    for word in ["active", "deactivating", "deactivating", "inactive", "inactive", "novel"] {
      peer.changed(unit, from: ":1.1", ["ActiveState": .string(word), "SubState": .string("x")])
    }
    peer.changed(unit, from: ":1.1", ["SubState": .string("y")])
    #expect(pump(session, peer) { heard.all.count == 4 })
    #expect(heard.all == ["active", "deactivating", "inactive", "novel"])
    peer.changed(unit, from: ":1.1", [:], invalidated: ["ActiveState"])
    #expect(pump(session, peer) { heard.all.count == 5 })
    #expect(heard.all.last == "active")
  }

  @Test func stateSurvivesTheBus() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    try followUnit()
    #expect(pump(session, peer) { heard.all.count == 1 })
    // A unit that was there and is unloaded is inactive, not mistyped.
    peer.answer = {
      $0.member == "GetAll" ? Self.unitProperties("not-found", "inactive") : .reply([])
    }
    peer.dropClients()
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all == ["active", "lost", "inactive"])
  }

  @Test func unknownUnitIsAnError() throws {
    peer.answer = {
      $0.member == "GetAll" ? Self.unitProperties("not-found", "inactive") : .reply([])
    }
    try followUnit()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["unknownUnit"])
  }

  @Test func theLongestNameIsFollowed() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    let name = try UnitName(String(repeating: "-", count: 247) + ".service")
    session.note(.activeState(name), in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["active"] })
    #expect(peer.matches.contains { $0.contains("path='\(name.objectPath)',arg0=") })
  }

  @Test(arguments: [
    [BusValue.string("x")], [.properties([:])],
    [.properties(["LoadState": .byte(1), "ActiveState": .byte(2)])],
  ])
  func malformedUnit(body: [BusValue]) throws {
    peer.answer = { $0.member == "GetAll" ? .reply(body) : .reply([]) }
    try followUnit()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(heard.all == ["malformed"])
  }

  @Test func malformedChangeIsReported() throws {
    peer.answer = { $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .reply([]) }
    try followUnit()
    #expect(pump(session, peer) { heard.all == ["active"] })
    peer.signal("PropertiesChanged", of: unit.properties, from: ":1.1", [.string(unit.interface)])
    #expect(pump(session, peer) { heard.all == ["active", "malformed"] })
  }

  /// systemd that refuses to send signals is reported; one that sends them already is not.
  @Test(arguments: [
    ("org.freedesktop.systemd1.AlreadySubscribed", ["active"]),
    ("org.freedesktop.DBus.Error.AccessDenied", ["accessDenied", "active"]),
  ])
  func refusedSubscription(name: String, words: [String]) throws {
    peer.answer = {
      $0.member == "GetAll" ? Self.unitProperties("loaded", "active") : .error(name, "no")
    }
    try followUnit()
    #expect(pump(session, peer) { heard.all == words })
  }
}
