// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleTesting
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
    let log = Log()

    var fileDescriptor: Int32 { source.descriptors.first?.number ?? -1 }
    /// Woken too early, it does nothing.
    var deadline: MonotonicTime { .after(.milliseconds(5)) }

    func process() {
      source.wake { input in
        switch input {
        case .event(let event): log.add("\(event.cause)")
        case .systemd(.stopTimeout(let time, let isManagers)):
          log.add((isManagers ? "the manager stops" : "stop") + " in \(time)")
        case .systemd(.managerReload): log.add("reload")
        case .unitJob(let job): log.add(job.map { "job \($0)" } ?? "no job")
        case .awake(let request, let lack): log.add("\(request): \(lack ?? "granted")")
        case .systemd(.sleepDelay(let delay)): log.add("delay \(delay)")
        case .fact(.statusNote(_, let note)): log.add("note: \(note ?? "none")")
        case .fact(.warning(let text)): log.add(text)
        case .fact(.info(let text)): log.add("info: \(text)")
        default: log.add("unexpected: \(input)")
        }
      }
    }
  }

  private func follow(_ inputs: [BusInput]) throws -> Followed {
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
    "A message about \(member) has an unexpected type. The daemon continues without: \(subject)."
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
    #expect(peer.calls.map(\.member) == ["Subscribe", "Get"])
    #expect(peer.calls[1].path == "/org/freedesktop/systemd1/unit/self")
    #expect(peer.calls[1].strings == ["org.freedesktop.systemd1.Service", "TimeoutStopUSec"])
  }

  /// A scope has no properties of a service.
  @Test func theTimeOfAScope() throws {
    peer.answer = { call in
      call.strings.first?.hasSuffix(".Scope") == true
        ? .reply([.variant(.uint64(6_000_000))])
        : .error("org.freedesktop.DBus.Error.UnknownProperty", "Unknown interface or property")
    }
    let followed = try follow([.stopTimeout])
    #expect(brings(followed, ["stop in 6.0 seconds"]), "\(followed.log.all)")
    let paths = peer.calls.dropFirst().map(\.path)
    #expect(paths.allSatisfy { $0 == "/org/freedesktop/systemd1/unit/self" })
  }

  /// systemd tells of the begin and of the end of a daemon-reload. It need not grant that to everybody who may read.
  @Test(arguments: [true, false]) func aDaemonReloadIsToldAndTheTimeReadAgain(isGranted: Bool)
    throws
  {
    var microseconds: UInt64 = 6_000_000
    peer.answer = { call in
      call.member == "Subscribe" && !isGranted
        ? .error("org.freedesktop.DBus.Error.AccessDenied", "no")
        : .reply([.variant(.uint64(microseconds))])
    }
    let followed = try follow([.stopTimeout])
    #expect(brings(followed, ["stop in 6.0 seconds"]))
    microseconds = 9_000_000
    let manager = BusObject(
      destination: BusObject.systemd.destination, path: "/org/freedesktop/systemd1",
      interface: "org.freedesktop.systemd1.Manager")
    peer.signal("Reloading", of: manager, from: ":1.1", [.bool(true)])
    #expect(
      brings(followed, ["stop in 6.0 seconds", "reload", "stop in 9.0 seconds"]),
      "\(followed.log.all)")
  }

  /// A user's service is stopped with its manager, whose time may be the shorter one.
  @Test func theTimeOfAUsersManagerIsReadToo() throws {
    peer.answer = { _ in .reply([.variant(.uint64(6_000_000))]) }
    let source = BusSource(
      .address(peer.address), [], userManager: "user@1000.service", options: BusTests.options)
    try source.open()
    let followed = Followed(source: source)
    #expect(brings(followed, ["the manager stops in 6.0 seconds"]), "\(followed.log.all)")
    #expect(peer.calls[1].path == "/org/freedesktop/systemd1/unit/user_401000_2eservice")
    #expect(peer.calls[1].strings == ["org.freedesktop.systemd1.Service", "TimeoutStopUSec"])
  }

  /// What a module beside the core asks, as a lease does.
  @Test func othersAskOverTheSameConnection() throws {
    peer.answer = { _ in .reply([.variant(.string("mixed"))]) }
    let log = Log()
    let source = BusSource(
      .address(peer.address),
      [
        .other {
          BusRequest(.systemd, query: .get("KillMode", of: "/unit", "Service", .systemd)) {
            if case .reply(let values, _) = $0 { log.add("\(values)") }
            return .done
          }
        }
      ], options: BusTests.options)
    try source.open()
    #expect(pump(Followed(source: source), peer) { !log.all.isEmpty })
    #expect(peer.calls.map(\.strings) == [["org.freedesktop.systemd1.Service", "KillMode"]])
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
    #expect(followed.log.all[0].hasSuffix("The daemon continues without: TimeoutStopSec=."))
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
    (job(7), .reply([.variant(.string("verify\n"))]), "job verify\\n"),
    (job(0), .silence, "no job"), ([.string("x")], .silence, "no job"),
    // It is over between the two calls.
    (job(7), .error("org.freedesktop.DBus.Error.UnknownObject", "gone"), "no job"),
  ]

  @Test(arguments: jobs.indices) func unitJob(index: Int) throws {
    let (job, type, words) = Self.jobs[index]
    peer.answer = { $0.strings.last == "Job" ? .reply(job) : type }
    let followed = try follow([.unitJob])
    // It is read when the termination begins, and not before.
    #expect(settle(followed, peer) && peer.calls.isEmpty)
    followed.source.receive(.terminating(LifecycleCause(.api)))
    #expect(brings(followed, [words]), "\(followed.log.all)")
  }

  /// The listening thread is woken for the query, which no message of the bus would do.
  @Test func aDaemonReadsItsJobWhenItStops() throws {
    let replies = ["Job": Self.job(7), "JobType": [.variant(.string("restart"))]]
    peer.answer = { call in
      call.strings.last.flatMap { replies[$0] }.map { .reply($0) } ?? .silence
    }
    var environment = try FakeServiceManager().environment
    environment["DBUS_SYSTEM_BUS_ADDRESS"] = peer.address
    let daemon = try TestSupport.ChildProcess(
      built("ProbeService"), ["lifecycle"], environment: environment)
    try daemon.expect("foreground done")
    let deadline = MonotonicTime.after(.seconds(60))
    while peer.calls.isEmpty, MonotonicTime.now() < deadline { peer.step() }
    daemon.send(SIGTERM)
    var exit: TestSupport.ChildProcess.Exit?
    while exit == nil, MonotonicTime.now() < deadline {
      peer.step()
      exit = try? daemon.wait(within: 0.005)
    }
    #expect(exit == .status(0) && daemon.output.contains("job: restart"), "\(daemon.output)")
  }

  /// They share a lock; the last lets it go. Each begins within a second, whether logind answers or not.
  @Test(arguments: [true, false]) func manyKeepTheMachineAwake(isAnswered: Bool) throws {
    let (end, lock) = BusTests.lock()
    defer { close(end) }
    peer.answer = { $0.strings.last == "block" && isAnswered ? lock : .silence }
    let folder = try Folder()
    var environment = try FakeServiceManager().environment
    environment["DBUS_SYSTEM_BUS_ADDRESS"] = peer.address
    let daemon = try TestSupport.ChildProcess(
      "/bin/sh",
      [
        "-c", #"exec "$0" lifecycle "$1" 2>&1"#, built("ProbeService"),
        "--awake=\(folder.path("done"))",
      ],
      environment: environment)
    let deadline = MonotonicTime.after(.seconds(60))
    func says(_ lines: String...) -> Bool {
      func isThere(_ line: String) -> Bool { daemon.output.contains { $0.contains(line) } }
      while MonotonicTime.now() < deadline, !lines.allSatisfy(isThere) {
        peer.step()
        _ = try? daemon.expect("what is never said", within: 0.005)
      }
      return lines.allSatisfy(isThere)
    }
    let lack = "from sleep: logind does not answer"
    #expect(isAnswered ? says("awake") : says("awake", lack))
    #expect(peer.calls.count { $0.strings.last == "block" } == 1)
    try folder.write("", to: "done")
    #expect(says("not awake any more"), "\(daemon.output)")
    daemon.send(SIGTERM)
    #expect(try daemon.wait() == .status(0))
    // On a busy machine an answer may come late, too.
    #expect(isAnswered || daemon.output.count { $0.contains(lack) } == 1, "\(daemon.output)")
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

  private func answerUnit(_ load: String, _ active: String, id: String = "db.service") {
    peer.answer = { call in
      call.member != "GetAll"
        ? .reply([])
        : .reply([
          .properties([
            "LoadState": .string(load), "ActiveState": .string(active), "Id": .string(id),
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
    let interface = BusWireValue.string(Self.unit.interface)
    var words = ["db.service is active"]
    for word in ["active", "deactivating", "deactivating", "inactive", "n\u{7}", "active"] {
      answerUnit("loaded", word)
      peer.signal("PropertiesChanged", of: Self.unit.properties, from: ":1.1", [interface])
      let fact = "db.service is \(VisibleText.line(word))"
      if words.last != fact { words.append(fact) }
      #expect(brings(followed, words))
    }
  }

  /// systemd sends its changes under the unit's own name alone.
  @Test func anAliasIsFollowed() throws {
    answerUnit("loaded", "inactive", id: "mariadb.service")
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, ["db.service is inactive"]))
    answerUnit("loaded", "active", id: "mariadb.service")
    let own = BusObject(
      destination: Self.unit.destination,
      path: "/org/freedesktop/systemd1/unit/mariadb_2eservice", interface: Self.unit.interface)
    peer.signal("PropertiesChanged", of: own.properties, from: ":1.1", [.string(own.interface)])
    #expect(brings(followed, ["db.service is inactive", "db.service is active"]))
  }

  /// systemd unloads what nothing needs, and says of a unit that it loads again only that it is new. To read one loads it
  /// for a moment, which must not be the reason to read it again.
  @Test(arguments: ["db.service", "db.mount"])
  func aUnitIsLoadedAgain(name: String) throws {
    answerUnit("not-found", "inactive", id: name)
    let followed = try follow([.unit(name)])
    let needsFile = name.hasSuffix(".service")
    let first = needsFile ? "note: not watched: there is no unit db.service" : "\(name) is inactive"
    #expect(brings(followed, [first]))
    func signal() {
      peer.signal(
        "UnitNew", of: .systemd, from: ":1.1", [.string(name), .objectPath(Self.unit.path)])
    }
    let unloaded = BusPeer.Reaction.error("org.freedesktop.systemd1.NoSuchUnit", "not loaded")
    var words = [first]
    for state in ["active", "inactive", "active"] {
      let others = peer.answer
      peer.answer = { $0.member == "GetUnit" ? unloaded : others($0) }
      let reads = peer.calls.count { $0.member == "GetAll" }
      signal()
      if words.last == "\(name) is active" { words.append("\(name) is inactive") }
      #expect(brings(followed, words))
      #expect(peer.calls.count { $0.member == "GetAll" } == reads)
      answerUnit(state == "active" ? "loaded" : "not-found", state, id: name)
      signal()
      if needsFile, words.count == 1 { words.append("note: none") }
      if words.last != "\(name) is \(state)" { words.append("\(name) is \(state)") }
      #expect(brings(followed, words), "\(followed.log.all)")
    }
    #expect(peer.calls.last { $0.member == "GetUnit" }?.strings == [name])
  }

  @Test func aUnitsStateSurvivesTheBus() throws {
    answerUnit("loaded", "active")
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, ["db.service is active"]))
    // A unit that existed and is unloaded is inactive, not mistyped.
    answerUnit("not-found", "inactive")
    peer.dropClients()
    #expect(pump(followed, peer) { followed.log.all.last == "db.service is inactive" })
    let others = followed.log.all.dropFirst().dropLast()
    #expect(others.first == "note: not watched: no bus for db.service" && others.count == 3)
    #expect(others.contains { $0.contains("The connection to the bus is lost") })
  }

  /// Units that can't be followed are in STATUS=. systemd finds a name that no unit can have in no object's path.
  @Test func unknownUnitsAreProblems() throws {
    answerUnit("not-found", "inactive")
    let followed = try follow([.unit("typo.service")])
    let note = "note: not watched: there is no unit"
    #expect(brings(followed, ["\(note) typo.service"]))
    peer.answer = { call in
      call.member != "GetAll"
        ? .reply([]) : .error("org.freedesktop.DBus.Error.InvalidArgs", "no name of a unit")
    }
    let mistyped = try follow([.unit("no\nunit")])
    #expect(brings(mistyped, ["\(note) no\\nunit"]))
    #expect(peer.calls.last?.path == "/org/freedesktop/systemd1/unit/no_0aunit")
  }

  /// Paths of units are libsystemd's.
  @Test func pathsOfUnits() throws {
    typealias Encode =
      @convention(c) (
        UnsafePointer<CChar>, UnsafePointer<CChar>,
        UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
      ) -> Int32
    let handle = try #require(dlopen(BusConnection.Options().library, RTLD_NOW))
    let encode = unsafeBitCast(try #require(dlsym(handle, "sd_bus_path_encode")), to: Encode.self)
    var random = SeededGenerator(seed: 11)
    let generated = (0..<10_000).map { _ in
      String(
        decoding: (0...random.below(8)).map { _ in UInt8(1 + random.below(127)) }, as: UTF8.self)
    }
    for name in generated + ["", "getty@tty1.service", "1-a_b.timer", "ü.service"] {
      var path: UnsafeMutablePointer<CChar>?
      #expect(encode("/x", name, &path) >= 0)
      defer { free(path) }
      try #require(path.map { String(cString: $0) } == "/x/" + label(ofUnit: name), "\(name)")
    }
  }

  @Test(arguments: [
    [BusWireValue.string("x")], [.properties([:])],
    [.properties(["LoadState": .byte(1), "ActiveState": .byte(2)])],
  ])
  func aMalformedUnit(body: [BusWireValue]) throws {
    peer.answer = { $0.member == "GetAll" ? .reply(body) : .reply([]) }
    let followed = try follow([.unit("db.service")])
    #expect(brings(followed, [Self.without("db.service", "org.freedesktop.systemd1.Unit")]))
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

  // MARK: Sleep

  /// What logind answers: whether it sleeps, its limit, and to `Inhibit`.
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
  private static let noSleepLock =
    "note: no delay lock: the machine's sleep does not wait for the hooks"
  private static let deniedLock =
    "info: No delay lock: the machine's sleep does not wait for the hooks. Allow it in polkit, or remove `.sleep`."
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

  /// The lock against both, or that against the sleep alone where the other is denied.
  @Test(arguments: [
    ("sleep:shutdown", "", 1, "7: granted"),
    ("sleep", "AccessDenied", 2, "7: shutdown: "),
    ("", "InteractiveAuthorizationRequired", 2, "7: sleep: "),
  ])
  func whatKeepsTheMachineAwake(
    granted: String, error: String, requests: Int, answer: String
  ) throws {
    let (end, lock) = BusTests.lock()
    defer { close(end) }
    peer.answer = { call in
      call.strings[0] == granted ? lock : .error("org.freedesktop.DBus.Error.\(error)", "no")
    }
    let followed = try follow([.awake(because: "a backup", request: 7)])
    #expect(pump(followed, peer) { followed.log.all.count == 1 } && settle(followed, peer))
    #expect(followed.log.all[0].hasPrefix(answer), "\(followed.log.all)")
    #expect(peer.calls[0].strings == ["sleep:shutdown", Journal.programName, "a backup", "block"])
    #expect(inhibits == requests)
  }

  /// Another error may be over the next time, so the same is asked for again.
  @Test func anErrorIsNoDenial() throws {
    let (end, lock) = BusTests.lock()
    defer { close(end) }
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.LimitsExceeded", "Too many") }
    let followed = try follow([.awake(because: "a backup", request: 7)])
    #expect(pump(followed, peer) { inhibits >= 2 })
    #expect(followed.log.all.allSatisfy { $0.hasPrefix("7: sleep: ") })
    peer.answer = { _ in lock }
    #expect(pump(followed, peer) { followed.log.all.last == "7: granted" })
    #expect(peer.calls.allSatisfy { $0.strings.first == "sleep:shutdown" })
  }

  @Test func aSleepThatBeganBeforeAndEndsWithoutTheBus() throws {
    answerLogind(true, Self.denied)
    let followed = try follow([.sleep])
    #expect(brings(followed, [Self.deniedLock, Self.asleep]))
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
    #expect(brings(followed, [Self.deniedLock]))
    announce("PrepareForSleep", body)
    announce("PrepareForSleep", [.bool(true)])
    #expect(
      brings(
        followed,
        [
          Self.deniedLock, Self.asleep, Self.without("the machine's sleep", "PrepareForSleep"),
        ])
        || followed.log.all == [
          Self.deniedLock, Self.without("the machine's sleep", "PrepareForSleep"), Self.asleep,
        ])
  }

  @Test func aLockIsTakenThoughLogindWasAway() throws {
    answerLogind(false)
    let followed = try follow([.sleep])
    #expect(pump(followed, peer) { inhibits >= 3 })
    // Reported once, however often it was requested.
    #expect(followed.log.all.count == 2 && followed.log.all.contains(Self.noSleepLock))
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
    #expect(brings(followed, [Self.deniedLock]))
    let end = MonotonicTime.after(.milliseconds(100))
    #expect(pump(followed, peer) { MonotonicTime.now() >= end } && inhibits == 1)
    let pipe = grant()
    peer.setOwner(of: BusObject.logind.destination, to: ":1.7")
    #expect(pump(followed, peer) { inhibits == 2 } && settle(followed, peer))
    #expect(followed.log.all == [Self.deniedLock])
    close(pipe)
  }

  /// The note of a lock that is missing for a while goes, also where it turns out to be denied.
  @Test func aLockThatIsDeniedAfterLogindWasAwayLeavesNoNote() throws {
    answerLogind(false)
    let followed = try follow([.sleep])
    #expect(pump(followed, peer) { followed.log.all.contains(Self.noSleepLock) })
    answerLogind(false, Self.denied)
    #expect(pump(followed, peer) { followed.log.all.last == Self.deniedLock })
    #expect(followed.log.all.suffix(2) == ["note: none", Self.deniedLock])
  }

  /// The next sleep is delayed too.
  @Test func aLockIsTakenAfterASleepThatEndedWithoutTheBus() throws {
    let first = grant()
    let followed = try follow([.sleep])
    #expect(pump(followed, peer) { inhibits == 1 } && settle(followed, peer))
    announce("PrepareForSleep", [.bool(true)])
    #expect(pump(followed, peer) { followed.log.all.last == Self.asleep })
    followed.source.receive(.readyToSleep)
    let second = grant()
    peer.dropClients()
    #expect(pump(followed, peer) { inhibits == 2 } && settle(followed, peer))
    announce("PrepareForSleep", [.bool(true)])
    #expect(
      pump(followed, peer) { followed.log.all.suffix(2) == ["delay 9.0 seconds", Self.asleep] })
    for end in [first, second] { close(end) }
  }

  @Test(arguments: [[], [BusWireValue.uint32(3)], [.string("fd")]])
  func aLockThatIsNoneIsMalformed(body: [BusWireValue]) throws {
    answerLogind(false, .reply(body))
    let followed = try follow([.sleep])
    #expect(
      brings(followed, [Self.noSleepLock, Self.without("a delay lock for the sleep", "Inhibit")]))
  }

  // MARK: Warnings

  /// What shares a reason makes one line, and is logged once.
  @Test func warningsAreSharedAndLoggedOnce() {
    let inbox = BusInbox()
    let lost = BusError(.unavailable, "There is no bus: gone.")
    for _ in 0..<2 { for subject in ["b", "a"] { inbox.warn(lost, without: subject) } }
    inbox.warn(BusError(.other, "no"), without: "c")
    let lines = inbox.take().map { if case .fact(.warning(let text)) = $0 { text } else { "" } }
    #expect(
      lines == [
        "There is no bus: gone. The daemon continues without: a, b.",
        "no. The daemon continues without: c.",
      ])
    inbox.warn(lost, without: "a")
    #expect(inbox.take().isEmpty)
    inbox.settle("a")
    inbox.warn(lost, without: "a")
    #expect(inbox.take().count == 1)
  }
}
