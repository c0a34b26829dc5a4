// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// What the lifecycle reads from systemd and logind, and follows there.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusSourceTests {
  private let peer = BusPeer()

  /// A source whose inputs are noted in words.
  private struct Followed: BusWorker {
    let source: BusSource
    let log = BusLog<String>()

    var fileDescriptor: Int32 { source.descriptors.first?.number ?? -1 }

    func process() {
      for input in source.read(PolledDescriptor(number: fileDescriptor)) {
        switch input {
        case .event(let event): log.append("\(event.cause)")
        case .stopTimeout(let time): log.append("stop in \(time)")
        case .unitJob(let job): log.append(job.map { "job \($0)" } ?? "no job")
        case .sleepDelay(let delay): log.append("delay \(delay)")
        case .statusNote(_, let note): log.append("note: \(note ?? "none")")
        case .warning(let text): log.append(text)
        default: log.append("unexpected: \(input)")
        }
      }
    }
  }

  private func follow(_ inputs: [SystemdConfiguration.Input]) throws -> Followed {
    let source = BusSource(.address(peer.address), inputs, options: BusTests.options)
    try source.open()
    return Followed(source: source)
  }

  private func brings(_ followed: Followed, _ words: [String]) -> Bool {
    let isThere = pump(followed, peer) { followed.log.all.count >= words.count }
    let all = followed.log.all
    return isThere && settle(followed, peer) && all == words && followed.log.all == words
  }

  private static func without(_ subject: String, _ member: String) -> String {
    "A message about \(member) is not of its type. The daemon goes on without: \(subject)."
  }

  private static let away = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has this name")

  // MARK: The own unit

  @Test(arguments: [
    (UInt64(90_000_000), "90.0 seconds"), (1_500_001, "1.500001 seconds"),
    (.max, "9.223372036854776e+18 seconds"),
  ])
  func stopTimeout(microseconds: UInt64, duration: String) throws {
    peer.answer = { _ in .reply([.variant(.uint64(microseconds))]) }
    let followed = try follow([.stopTimeout])
    #expect(brings(followed, ["stop in \(duration)"]), "\(followed.log.all)")
    #expect(peer.calls[0].path == "/org/freedesktop/systemd1/unit/self")
    #expect(peer.calls[0].strings == ["org.freedesktop.systemd1.Service", "TimeoutStopUSec"])
  }

  @Test(arguments: [
    [], [BusWireValue.uint32(1)], [.variant(.string("1"))], [.variant(.uint64(1)), .byte(1)],
  ])
  func wrongTypesAreMalformed(body: [BusWireValue]) throws {
    peer.answer = { _ in .reply(body) }
    let followed = try follow([.stopTimeout])
    #expect(brings(followed, [Self.without("TimeoutStopSec=", "TimeoutStopUSec")]))
  }

  /// A restart of systemd is over so soon that nobody needs to know; one that lasts is reported, once.
  @Test func aStopTimeoutIsReadThoughSystemdWasAway() throws {
    peer.answer = { _ in Self.away }
    let followed = try follow([.stopTimeout])
    #expect(pump(followed, peer) { peer.calls.count >= 3 } && followed.log.all.isEmpty)
    #expect(pump(followed, peer) { !followed.log.all.isEmpty })
    let count = peer.calls.count
    #expect(pump(followed, peer) { peer.calls.count >= count + 3 })
    #expect(followed.log.all.count == 1)
    #expect(followed.log.all[0].hasSuffix("The daemon goes on without: TimeoutStopSec=."))
    peer.answer = { _ in .reply([.variant(.uint64(6_000_000))]) }
    #expect(pump(followed, peer) { followed.log.all.last == "stop in 6.0 seconds" })
    peer.answer = { _ in .reply([.variant(.uint64(9_000_000))]) }
    peer.setOwner(of: BusObject.systemd.destination, to: ":1.7")
    #expect(pump(followed, peer) { followed.log.all.last == "stop in 9.0 seconds" })
  }

  private static func job(_ id: UInt32) -> [BusWireValue] {
    [.variant(.structure([.uint32(id), .objectPath("/org/freedesktop/systemd1/job/7")]))]
  }

  /// The job, its type, and what is learnt.
  private static let jobs: [([BusWireValue], BusPeer.Reaction, String)] = [
    (job(7), .reply([.variant(.string("restart"))]), "job restart"),
    (job(7), .reply([.variant(.string("verify\n"))]), "job other(\"verify\\\\n\")"),
    (job(0), .silence, "no job"), ([.string("x")], .silence, "no job"),
    // It is over between the two calls.
    (job(7), .error("org.freedesktop.DBus.Error.UnknownObject", "gone"), "no job"),
  ]

  @Test(arguments: jobs.indices) func unitJob(index: Int) throws {
    let (job, type, words) = Self.jobs[index]
    peer.answer = { $0.strings.last == "Job" ? .reply(job) : type }
    let followed = try follow([.unitJob])
    // It is read when it matters, and not before.
    #expect(settle(followed, peer) && peer.calls.isEmpty)
    followed.source.receive(.terminating(LifecycleCause(.api)))
    #expect(brings(followed, [words]), "\(followed.log.all)")
  }

  /// Facts come on any thread.
  @Test func manyThreadsAskAtOnce() throws {
    peer.answer = { _ in .reply(Self.job(0)) }
    let followed = try follow([.unitJob])
    let group = DispatchGroup()
    for _ in 0..<4 {
      DispatchQueue.global().async(group: group) { [source = followed.source] in
        for _ in 0..<50 { source.receive(.terminating(LifecycleCause(.api))) }
      }
    }
    #expect(pump(followed, peer) { group.wait(timeout: .now()) == .success })
    #expect(pump(followed, peer) { !followed.log.all.isEmpty } && settle(followed, peer))
    #expect(followed.log.all.allSatisfy { $0 == "no job" })
  }

  // MARK: Other units

  private static let unit = BusObject(
    destination: BusObject.systemd.destination,
    path: "/org/freedesktop/systemd1/unit/db_2eservice",
    interface: "org.freedesktop.systemd1.Unit")

  private func answerUnit(_ load: String, _ active: String) {
    peer.answer = { call in
      call.member != "GetAll"
        ? .reply([])
        : .reply([
          .properties([
            "LoadState": .string(load), "ActiveState": .string(active), "Id": .string("x"),
            "After": .array(of: "s", [.string("y")]), "CPUWeight": .uint64(1), "Nice": .int32(1),
          ])
        ])
    }
  }

  @Test func aUnitsStateAndChangesWithoutRepeats() throws {
    answerUnit("loaded", "active")
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, ["db.service is active"]))
    #expect(peer.calls.map(\.member) == ["Subscribe", "GetAll"])
    for word in ["active", "deactivating", "deactivating", "inactive", "inactive", "n\u{7}"] {
      peer.changed(
        Self.unit, from: ":1.1", ["ActiveState": .string(word), "SubState": .string("x")])
    }
    peer.changed(Self.unit, from: ":1.1", ["SubState": .string("y")])
    peer.changed(Self.unit, from: ":1.1", [:], invalidated: ["ActiveState"])
    #expect(
      brings(
        followed,
        ["active", "deactivating", "inactive", "n\\u{7}", "active"].map { "db.service is \($0)" }))
  }

  @Test func aUnitsStateSurvivesTheBus() throws {
    answerUnit("loaded", "active")
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, ["db.service is active"]))
    // A unit that existed and is unloaded is inactive, not mistyped.
    answerUnit("not-found", "inactive")
    peer.dropClients()
    #expect(pump(followed, peer) { followed.log.all.last == "db.service is inactive" })
    #expect(followed.log.all.count == 3 && followed.log.all[1].contains("The connection"))
  }

  /// Units that can't be followed are in STATUS=.
  @Test func unknownUnitsAreProblems() throws {
    answerUnit("not-found", "inactive")
    let followed = try follow([.unit("typo.service"), .unit("no unit")])
    let words = "\"no unit\" is not the name of a unit"
    #expect(
      brings(
        followed,
        [
          "note: not watched: \(words)",
          "note: not watched: \(words), there is no unit typo.service",
        ]))
  }

  @Test(arguments: [
    [BusWireValue.string("x")], [.properties([:])],
    [.properties(["LoadState": .byte(1), "ActiveState": .byte(2)])],
  ])
  func aMalformedUnit(body: [BusWireValue]) throws {
    peer.answer = { $0.member == "GetAll" ? .reply(body) : .reply([]) }
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, [Self.without("db.service", "org.freedesktop.systemd1.Unit")]))
    peer.signal(
      "PropertiesChanged", of: Self.unit.properties, from: ":1.1", [.string(Self.unit.interface)])
    #expect(pump(followed, peer) { followed.log.all.count == 2 })
    #expect(followed.log.all[1] == Self.without("db.service", "PropertiesChanged"))
  }

  /// systemd that refuses to send signals is reported; one that sends them already is not.
  @Test(arguments: [
    ("org.freedesktop.systemd1.AlreadySubscribed", 1),
    ("org.freedesktop.DBus.Error.AccessDenied", 2),
  ])
  func aRefusedSubscription(name: String, count: Int) throws {
    answerUnit("loaded", "active")
    let answer = peer.answer
    peer.answer = { $0.member == "GetAll" ? answer($0) : .error(name, "no") }
    let followed = try follow([.unit("db.service")])
    #expect(pump(followed, peer) { followed.log.all.count == count })
    #expect(followed.log.all.contains("db.service is active"))
  }

  // MARK: Sleep and shutdown

  /// What logind answers: whether it sleeps or shuts down, its limit, and to `Inhibit`.
  private func answerLogind(_ isUnderWay: Bool, _ lock: BusPeer.Reaction = away) {
    peer.answer = { call in
      switch call.strings.last {
      case "delay": lock
      case "InhibitDelayMaxUSec": .reply([.variant(.uint64(10_000_000))])
      default: .reply([.variant(.bool(isUnderWay))])
      }
    }
  }

  private static let denied = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.AccessDenied", "Permission denied")
  private static let noSleepLock = "note: no delay lock: a suspend does not wait for the hooks"
  private static let noShutdownLock = "note: no delay lock: a shutdown does not wait for the save"
  private static let (asleep, awake) = (
    "the machine is about to sleep", "the machine has woken up"
  )

  private func announce(_ member: String, _ body: [BusWireValue]) {
    peer.signal(member, of: .logind, from: ":1.10", body)
  }

  private var inhibits: Int { peer.calls.count { $0.member == "Inhibit" } }

  /// Grants a lock whenever one is requested, until the next answers are set; returns logind's end of it.
  private func grant() -> Int32 {
    let (end, granted) = BusTests.lock()
    answerLogind(false, granted)
    return end
  }

  /// A lock is taken before and released after, and again for the next sleep.
  @Test func sleepAndWake() throws {
    let first = grant()
    let followed = try follow([.sleep])
    #expect(pump(followed, peer) { peer.calls.count >= 3 } && settle(followed, peer))
    #expect(
      peer.calls[0].strings == ["sleep", Journal.programName, "Saves its state", "delay"])
    answerLogind(false, .silence)
    for _ in 0..<2 { announce("PrepareForSleep", [.bool(true)]) }
    #expect(brings(followed, ["delay 9.0 seconds", Self.asleep]))
    #expect(!BusTests.isHungUp(first) && inhibits == 1)
    followed.source.receive(.readyToSleep)
    #expect(BusTests.hangsUp(first))
    let second = grant()
    announce("PrepareForSleep", [.bool(false)])
    #expect(brings(followed, ["delay 9.0 seconds", Self.asleep, Self.awake]))
    #expect(inhibits == 2)
    answerLogind(false, .silence)
    // Of the sleep before.
    followed.source.receive(.readyToSleep)
    #expect(!BusTests.isHungUp(second))
    for end in [first, second] { close(end) }
  }

  @Test func aSleepThatBeganBeforeAndEndsWithoutTheBus() throws {
    answerLogind(true, Self.denied)
    let followed = try follow([.sleep])
    #expect(brings(followed, [Self.noSleepLock, Self.asleep]))
    answerLogind(false, Self.denied)
    peer.dropClients()
    #expect(pump(followed, peer) { followed.log.all.last == Self.awake })
    answerLogind(true, Self.denied)
    peer.setOwner(of: BusObject.logind.destination, to: ":1.78")
    #expect(pump(followed, peer) { followed.log.all.last == Self.asleep })
  }

  @Test(arguments: [[], [BusWireValue.string("true")], [.variant(.bool(true))]])
  func malformedAnnouncementsAreReported(body: [BusWireValue]) throws {
    answerLogind(false, Self.denied)
    let followed = try follow([.sleep])
    #expect(brings(followed, [Self.noSleepLock]))
    announce("PrepareForSleep", body)
    announce("PrepareForSleep", [.bool(true)])
    #expect(
      brings(
        followed,
        [
          Self.noSleepLock, Self.asleep, Self.without("the machine's sleep", "PrepareForSleep"),
        ])
        || followed.log.all == [
          Self.noSleepLock, Self.without("the machine's sleep", "PrepareForSleep"), Self.asleep,
        ])
  }

  @Test(arguments: [("poweroff", "power off"), ("l\u{1b}", "shut down (l\\u{1b})")])
  func aShutdownIsReportedOnce(word: String, phrase: String) throws {
    let end = grant()
    let followed = try follow([.shutdown])
    #expect(pump(followed, peer) { peer.calls.count >= 2 } && settle(followed, peer))
    answerLogind(false, Self.denied)
    let report = LifecycleReport(cause: LifecycleCause(.api), entries: [])
    let saved = LifecycleFact.ended(
      .saveState, report, .zero, LifecycleSnapshot(state: .foreground, reasons: []))
    followed.source.receive(.began(.saveState, report.cause, at: .now()))
    announce("PrepareForShutdownWithMetadata", [.bool(true), .properties(["type": .string(word)])])
    announce("PrepareForShutdown", [.bool(true)])
    #expect(brings(followed, ["the machine is about to \(phrase)"]))
    // The end of the save that it requests releases the lock, not that of one before.
    followed.source.receive(saved)
    #expect(!BusTests.isHungUp(end))
    followed.source.receive(.began(.saveState, report.cause, at: .now()))
    followed.source.receive(saved)
    #expect(BusTests.hangsUp(end))
    announce("PrepareForShutdownWithMetadata", [.bool(false), .properties([:])])
    announce("PrepareForShutdown", [.bool(false)])
    announce("PrepareForShutdown", [.bool(true)])  // as an old systemd does
    #expect(pump(followed, peer) { followed.log.all.last == "the machine is about to shut down" })
    close(end)
  }

  @Test(arguments: [
    [BusWireValue.bool(true)], [.bool(true), .int32(1)],
    [.bool(true), .properties(["type": .byte(1)])],
  ])
  func aShutdownWithoutUsableMetadataCounts(body: [BusWireValue]) throws {
    answerLogind(false, Self.denied)
    let followed = try follow([.shutdown])
    #expect(brings(followed, [Self.noShutdownLock]))
    announce("PrepareForShutdownWithMetadata", body)
    #expect(brings(followed, [Self.noShutdownLock, "the machine is about to shut down"]))
  }

  @Test(arguments: [
    (SystemdConfiguration.Input.sleep, noSleepLock), (.shutdown, noShutdownLock),
  ])
  func aLockIsTakenThoughLogindWasAway(input: SystemdConfiguration.Input, note: String) throws {
    answerLogind(false)
    let followed = try follow([input])
    #expect(pump(followed, peer) { inhibits >= 3 })
    // Reported once, however often it was requested.
    #expect(followed.log.all.count == 2 && followed.log.all.contains(note))
    let end = grant()
    #expect(pump(followed, peer) { followed.log.all.last == "note: none" })
    // logind keeps its locks when it is restarted: no second one is taken.
    let count = inhibits
    peer.setOwner(of: BusObject.logind.destination, to: ":1.7")
    #expect(settle(followed, peer) && inhibits == count)
    close(end)
  }

  /// Without polkit there is no point in another request, until another logind may answer otherwise.
  @Test func aDeniedLockIsRequestedAgainOfANewLogind() throws {
    answerLogind(false, Self.denied)
    let followed = try follow([.sleep])
    #expect(brings(followed, [Self.noSleepLock]))
    let end = MonotonicTime.after(.milliseconds(100))
    #expect(pump(followed, peer) { MonotonicTime.now() >= end } && inhibits == 1)
    let pipe = grant()
    peer.setOwner(of: BusObject.logind.destination, to: ":1.7")
    #expect(brings(followed, [Self.noSleepLock, "note: none"]))
    close(pipe)
  }

  @Test(arguments: [[], [BusWireValue.uint32(3)], [.string("fd")]])
  func aLockThatIsNoneIsMalformed(body: [BusWireValue]) throws {
    answerLogind(false, .reply(body))
    let followed = try follow([.sleep])
    #expect(
      brings(followed, [Self.noSleepLock, Self.without("a delay lock for the sleep", "Inhibit")]))
  }

  // MARK: The user's session

  @Test func aSessionIsFollowed() throws {
    let user = BusObject(
      destination: BusObject.logind.destination, path: "/org/freedesktop/login1/user/_1000",
      interface: "org.freedesktop.login1.User")
    func object(_ path: String) -> BusObject {
      BusObject(
        destination: BusObject.logind.destination, path: path,
        interface: "org.freedesktop.login1.Session")
    }
    let facts = SessionFacts()
    peer.answer = { call in
      if call.path.hasSuffix("user/self") {
        let display = BusWireValue.structure([.string("x"), .objectPath(facts.display)])
        return .reply([.properties(["Display": display, "UID": .uint32(1000)])])
      }
      guard let (active, locked) = facts.sessions[call.path] else {
        return .error("org.freedesktop.DBus.Error.UnknownObject", "gone")
      }
      return .reply([.properties(["Active": .bool(active), "LockedHint": .bool(locked)])])
    }
    let followed = try follow([.session])
    func become(_ words: String) -> Bool { pump(followed, peer) { followed.log.all.last == words } }
    #expect(become("the user has no session"))
    facts.sessions = ["/s/1": (true, false), "/s/2": (false, false)]
    facts.display = "/s/1"
    peer.changed(
      user, from: ":1.10", ["Display": .structure([.string("1"), .objectPath("/s/1")])])
    #expect(become("the session is active"))
    facts.sessions["/s/1"] = (true, true)
    peer.changed(object("/s/1"), from: ":1.10", ["LockedHint": .bool(true)])
    #expect(become("the session is locked"))
    facts.display = "/s/2"
    announce("SessionRemoved", [.string("1"), .objectPath("/s/1")])
    #expect(become("another session is active"))
    // The session ends before it is read: there is another soon.
    facts.display = "/s/3"
    peer.changed(object("/s/2"), from: ":1.10", [:], invalidated: ["Active"])
    #expect(settle(followed, peer) && followed.log.all.count == 4)
    facts.display = "/"
    announce("SessionNew", [.string("1"), .objectPath("/s/1")])
    #expect(become("the user has no session"))
    // What is about other properties is not read.
    let count = peer.calls.count
    peer.changed(user, from: ":1.10", ["State": .string("online")])
    #expect(settle(followed, peer) && peer.calls.count == count)
  }

  @Test func aServiceOfTheSystemHasNoSession() throws {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.UnknownObject", "no user") }
    let followed = try follow([.session])
    #expect(pump(followed, peer) { !followed.log.all.isEmpty })
    #expect(followed.log.all[0].hasSuffix("The daemon goes on without: the user's session."))
  }

  // MARK: Warnings

  /// What shares a reason makes one line, and is logged once.
  @Test func warningsAreSharedAndLoggedOnce() {
    let inbox = BusInbox()
    let lost = BusError(.unavailable, "There is no bus: gone.")
    for _ in 0..<2 { for subject in ["b", "a"] { inbox.warn(lost, without: subject) } }
    inbox.warn(BusError(.other, "no"), without: "c")
    let lines = inbox.take().map { if case .warning(let text) = $0 { text } else { "" } }
    #expect(
      lines == [
        "There is no bus: gone. The daemon goes on without: a, b.",
        "no. The daemon goes on without: c.",
      ])
    inbox.warn(lost, without: "a")
    #expect(inbox.take().isEmpty)
    inbox.settle("a")
    inbox.warn(lost, without: "a")
    #expect(inbox.take().count == 1)
  }
}

/// What the peer's logind answers; used by the test's thread only.
private final class SessionFacts {
  var display = "/"
  var sessions: [String: (Bool, Bool)] = [:]
}
