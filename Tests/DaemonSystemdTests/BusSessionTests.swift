import CLinux
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusSessionTests {
  private let peer = BusPeer()
  private let heard = BusLog<String>()
  private let echo = BusObject(
    destination: "org.example", path: "/echo", interface: "org.example.Echo")

  private func observer() -> BusSessionObserver {
    BusSessionObserver(
      connected: { [heard] _ in heard.append("connected") },
      disconnected: { [heard] error in
        let word =
          switch error {
          case .unavailable: "unavailable"
          case .disconnected: "disconnected"
          case .closed: "closed"
          default: error.description
          }
        heard.append(word)
      })
  }

  // MARK: Connecting

  @Test func connectsWithoutWaiting() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let watch = session.observe(observer())
    session.start()
    #expect(pump(session, peer) { heard.all == ["connected"] })
    session.close()
    #expect(heard.all == ["connected", "closed"])
    watch.cancel()
  }

  @Test func absentLibraryIsSaidOnce() {
    var options = BusTests.options
    options.library = "libnowhere.so.0"
    let session = BusSession(.system, options: options)
    let watch = session.observe(observer())
    let answers = BusLog<BusError>()
    session.perform { if case .failure(let error) = $0 { answers.append(error) } }
    session.start()
    #expect(pump(session, nil) { !answers.all.isEmpty })
    #expect(heard.all == ["unavailable"])
    guard case .unavailable(let reason)? = answers.all.first else {
      Issue.record("\(answers.all)")
      return
    }
    #expect(reason.contains("libnowhere.so.0"))
    // Nothing is tried again: the descriptor stays quiet.
    session.process()
    var ready = pollfd(fd: session.fileDescriptor, events: Int16(POLLIN), revents: 0)
    #expect(poll(&ready, 1, 0) == 0)
    watch.cancel()
  }

  @Test func libraryWithoutSdBusIsUnavailable() {
    #expect(throws: BusError.self) { try BusLibrary.load("libc.so.6") }
  }

  @Test func missingSocketIsSaidOnceAndTriedAgain() {
    peer.stop()
    unlink(peer.path)
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let watch = session.observe(observer())
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    peer.listen()
    #expect(pump(session, peer) { heard.all.count > 1 })
    #expect(heard.all == ["unavailable", "connected"])
    watch.cancel()
  }

  @Test(arguments: [BusPeer.Manner.hangsUpAtOnce, .hangsUpAfterAuthentication])
  func refusalIsUnavailable(manner: BusPeer.Manner) {
    peer.manner = manner
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let watch = session.observe(observer())
    session.start()
    #expect(pump(session, peer) { peer.connectionCount >= 4 })
    #expect(heard.all == ["unavailable"])
    peer.manner = .welcomes
    #expect(pump(session, peer) { heard.all == ["unavailable", "connected"] })
    watch.cancel()
  }

  @Test func peerThatNeverWelcomesIsGivenUp() {
    peer.manner = .neverAnswers
    var options = BusTests.options
    options.connectTimeout = .milliseconds(30)
    let session = BusSession(.address(peer.address), options: options)
    let watch = session.observe(observer())
    let refused = BusLog<BusError>()
    session.perform { if case .failure(let error) = $0 { refused.append(error) } }
    session.start()
    #expect(pump(session, peer) { peer.connectionCount >= 2 })
    #expect(heard.all == ["unavailable"])
    #expect(refused.all.count == 1)
    watch.cancel()
  }

  @Test func lostAndBack() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let watch = session.observe(observer())
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    #expect(pump(session, peer) { heard.all == ["connected"] })
    let descriptor = session.fileDescriptor
    session.call(echo.method("Never")) { results.append($0) }
    #expect(pump(session, peer) { peer.calls.count == 1 })
    peer.dropClients()
    #expect(pump(session, peer) { heard.all.count == 3 })
    #expect(heard.all == ["connected", "disconnected", "connected"])
    #expect(results.all == [.failure(.disconnected(errno: ECONNRESET))])
    #expect(session.fileDescriptor == descriptor)
    peer.answer = { .reply($0.body) }
    session.call(echo.method("Say"), arguments: ["again"]) { results.append($0) }
    #expect(pump(session, peer) { results.all.count == 2 })
    #expect(results.all.last == .success([.string("again")]))
    watch.cancel()
  }

  // MARK: Values

  private static let sample: [BusValue] = [
    .byte(255), .bool(true), .bool(false), .int16(-2), .uint16(65_535), .int32(.min), .uint32(.max),
    .int64(.min),
    .uint64(.max), .double(-0.5), .string("grüß\u{1F642}"), .objectPath("/a/b_1"),
    .signature("a{sv}"),
    .array(of: "s", []), .array(of: "t", [.uint64(1), .uint64(2)]),
    .structure([.byte(1), .structure([.string("x")])]),
    .properties(["a": .int32(1), "b": .variant(.array(of: "y", [.byte(9)]))]),
    .variant(.structure([.uint32(7), .objectPath("/")])), .array(of: "a{sv}", [.properties([:])]),
  ]

  @Test func everyTypeIsRead() {
    peer.answer = { _ in .reply(Self.sample) }
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    session.call(echo.method("Say"), arguments: ["grüß\u{1F642}", ""]) { results.append($0) }
    #expect(pump(session, peer) { !results.all.isEmpty })
    #expect(peer.calls.first?.body == [.string("grüß\u{1F642}"), .string("")])
    #expect(results.all == [.success(Self.sample)])
  }

  @Test func descriptorIsAnOwnDuplicate() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let sent = BusDescriptor(OwnedDescriptor(owning: ends[1]))
    peer.answer = { _ in .reply([.descriptor(sent)]) }
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    session.call(echo.method("Pipe")) { results.append($0) }
    #expect(pump(session, peer) { !results.all.isEmpty })
    guard case .success(let values) = results.all[0], case .descriptor(let got)? = values.first
    else {
      Issue.record("\(results.all)")
      return
    }
    session.close()
    sent.close()
    let flags = got.number.withLock { clinux_descriptor_flags($0) }
    #expect(flags == FD_CLOEXEC)
    #expect(got.number.withLock { write($0, "x", 1) } == 1)
    got.close()
    #expect(got.number.withLock { $0 } == -1)
    var byte: UInt8 = 0
    #expect(read(ends[0], &byte, 1) == 1)
    #expect(read(ends[0], &byte, 1) == 0)  // the other end is closed, everywhere
    close(ends[0])
  }

  @Test func whatCanNotBeSentIsAnError() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let errors = BusLog<BusError>()
    session.start()
    let note: @Sendable (Result<[BusValue], BusError>) -> Void = {
      if case .failure(let error) = $0 { errors.append(error) }
    }
    session.call(echo.method("Say"), arguments: ["a\0b"], completion: note)
    session.call(echo.method("no method"), completion: note)
    session.perform { connection in
      guard case .success(let connection) = connection else { return }
      let rule = BusMatchRule.signal(
        "Z", of: BusObject(destination: "a'b", path: "/", interface: "x.y"))
      connection.match(rule) { if case .failure(let error) = $0 { errors.append(error) } }
    }
    #expect(pump(session, peer) { errors.all.count == 3 })
    for case let error in errors.all {
      if case .invalidArgument = error { continue }
      Issue.record("\(error)")
    }
  }

  // MARK: Errors and time

  @Test func errorReplyKeepsItsName() {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.AccessDenied", "no") }
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    session.call(echo.method("Do")) { results.append($0) }
    #expect(pump(session, peer) { !results.all.isEmpty })
    let expected = BusError.call(
      method: "org.example.Echo.Do", name: "org.freedesktop.DBus.Error.AccessDenied", message: "no",
      errno: EACCES)
    #expect(results.all == [.failure(expected)])
    #expect(expected.isAccessDenied)
  }

  @Test func unansweredCallTimesOut() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    session.call(echo.method("Never"), timeout: .milliseconds(20)) { results.append($0) }
    #expect(pump(session, peer) { !results.all.isEmpty })
    #expect(results.all == [.failure(.timedOut(method: "org.example.Echo.Never"))])
  }

  @Test func stormLeavesRoomForOthers() {
    var options = BusTests.options
    options.stepsAtOnce = 4
    let session = BusSession(.address(peer.address), options: options)
    let heard = BusLog<BusSignal>()
    let echo = echo
    peer.setOwner(of: echo.destination, to: ":1.5")
    session.start()
    session.perform { connection in
      guard case .success(let connection) = connection else { return }
      connection.match(.signal("Tick", of: echo)) {
        if case .success(let signal) = $0 { heard.append(signal) }
      }
    }
    #expect(pump(session, peer) { !peer.matches.isEmpty })
    for number in 0..<50 { peer.signal("Tick", of: echo, from: ":1.5", [.int32(Int32(number))]) }
    session.process()
    #expect(heard.all.count <= 4)
    #expect(pump(session, nil) { heard.all.count == 50 })
    #expect(heard.all.map(\.arguments) == (0..<50).map { [.int32($0)] })
  }

  // MARK: Ending

  @Test func closeAnswersEverybodyOnce() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    session.start()
    session.call(echo.method("Never")) { results.append($0) }
    #expect(pump(session, peer) { peer.calls.count == 1 })
    session.call(echo.method("Queued")) { results.append($0) }
    session.close()
    session.close()
    #expect(results.all == [.failure(.closed), .failure(.closed)] || results.all.count == 2)
    session.call(echo.method("Late")) { results.append($0) }
    #expect(results.all == Array(repeating: .failure(.closed), count: 3))
    session.process()
    #expect(results.all.count == 3)
  }

  @Test func closeWithinACallback() {
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let heard = BusLog<String>()
    session.start()
    session.perform { [weak session] _ in
      heard.append("first")
      session?.close()
      session?.process()
    }
    session.perform { heard.append((try? $0.get()) == nil ? "refused" : "second") }
    #expect(pump(session, peer) { heard.all.count == 2 })
    #expect(heard.all == ["first", "refused"])
  }

  @Test func sessionThatIsLetGoAnswers() {
    let results = BusLog<Result<[BusValue], BusError>>()
    do {
      let session = BusSession(.address(peer.address), options: BusTests.options)
      session.start()
      session.call(echo.method("Never")) { results.append($0) }
      #expect(pump(session, peer) { peer.calls.count == 1 })
    }
    #expect(results.all == [.failure(.closed)])
  }

  @Test func manyThreadsAskAtOnce() {
    peer.answer = { .reply($0.body) }
    let session = BusSession(.address(peer.address), options: BusTests.options)
    let results = BusLog<Result<[BusValue], BusError>>()
    let echo = echo
    session.start()
    let group = DispatchGroup()
    for thread in 0..<4 {
      DispatchQueue.global().async(group: group) {
        for number in 0..<50 {
          session.call(echo.method("Say"), arguments: ["\(thread * 50 + number)"]) {
            results.append($0)
          }
        }
      }
    }
    #expect(pump(session, peer) { results.all.count == 200 })
    #expect(group.wait(timeout: .now() + 20) == .success)
    #expect(Set(results.all.compactMap { try? $0.get().first }).count == 200)
  }
}
