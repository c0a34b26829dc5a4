// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

/// A question that is asked until it is answered, put to a bus of our own.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusInquiryTests {
  private let peer = BusPeer()
  private let heard = BusLog<String>()
  private static let systemd = BusObject.systemd.destination
  private static let away = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has this name")
  private static let second = BusPeer.Reaction.reply([.variant(.uint64(1_000_000))])

  private func session(firstDelay: Duration = .milliseconds(1)) -> BusSession {
    var options = BusTests.options
    options.firstDelay = firstDelay
    return BusSession(.address(peer.address), options: options)
  }

  /// Until what has been asked so far is answered, and for longer than the longest delay.
  private func settle(_ session: BusSession) -> Bool {
    let end = MonotonicTime.after(.milliseconds(50))
    return pump(session, peer) { MonotonicTime.now() >= end }
  }

  private var answers: [String] { heard.all.filter { $0 != "other" } }

  @Test func askedUntilAnsweredAndNotAgain() {
    let peer = peer
    var refusals = 5
    peer.answer = { _ in
      refusals -= 1
      return refusals >= 0 ? Self.away : Self.second
    }
    let session = session()
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { !answers.isEmpty })
    #expect(settle(session))
    #expect(answers == ["1.0 seconds"] && peer.calls.count == 6)
  }

  /// The next attempt would be in an hour.
  @Test func askedAtOnceWhenTheServiceHasANewOwner() {
    peer.answer = { _ in Self.away }
    let session = session(firstDelay: .seconds(3600))
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all.count == 1 })
    #expect(settle(session) && peer.calls.count == 1)
    peer.answer = { _ in Self.second }
    peer.setOwner(of: Self.systemd, to: ":1.7")
    #expect(pump(session, peer) { answers.count == 1 })
    // The answer of a manager that was re-executed may be another one.
    peer.setOwner(of: Self.systemd, to: ":1.8")
    #expect(pump(session, peer) { answers.count == 2 })
    // A service that has only gone has nothing to say.
    peer.setOwner(of: Self.systemd, to: "")
    #expect(settle(session) && peer.calls.count == 3)
  }

  @Test func aNewOwnerOutdatesAnAnswerThatIsAwaited() {
    let peer = peer
    peer.answer = { _ in .silence }
    let session = session(firstDelay: .seconds(3600))
    session.note(.stopTimeout, in: heard)
    session.note(.delayLimit, in: heard)
    session.start()
    #expect(pump(session, peer) { peer.calls.count == 2 })
    peer.setOwner(of: Self.systemd, to: ":1.7")
    #expect(settle(session) && peer.calls.count == 2)
    // The answer to the first question comes late.
    peer.answer = { _ in Self.second }
    peer.reply(Self.second, to: peer.calls[0])
    #expect(pump(session, peer) { heard.all == ["1.0 seconds", "1.0 seconds"] })
    #expect(peer.calls.last?.strings.last == "TimeoutStopUSec")
    #expect(settle(session) && peer.calls.count == 3)
  }

  @Test func askedAgainOnTheNextConnection() {
    peer.answer = { _ in .hangUp }
    let session = session()
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { peer.connectionCount >= 3 })
    peer.answer = { _ in Self.second }
    #expect(pump(session, peer) { heard.all.last == "1.0 seconds" })
    let count = peer.calls.count
    #expect(settle(session) && peer.calls.count == count)
    // It may be another one after a restart of the bus.
    peer.dropClients()
    #expect(pump(session, peer) { peer.calls.count == count + 1 })
  }

  @Test func whatIsNotWantedIsNotAsked() {
    peer.answer = { _ in Self.second }
    let session = session()
    let isWanted = Mutex(false)
    let item = session.follow(.stopTimeout) {
      isWanted.withLock { $0 }
    } _: { [heard] in
      heard.append(word($0, .stopTimeout))
      return true
    }
    session.note(.delayLimit, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    #expect(settle(session) && peer.calls.count == 1)
    isWanted.withLock { $0 = true }
    session.ask(item)
    #expect(pump(session, peer) { heard.all.count == 2 })
  }

  /// One that waits for its next attempt is asked at once.
  @Test func askingDoesNotWaitForTheNextAttempt() {
    peer.answer = { _ in Self.away }
    let session = session(firstDelay: .seconds(3600))
    let item = session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["other"] })
    peer.answer = { _ in Self.second }
    session.ask(item)
    #expect(pump(session, peer) { answers == ["1.0 seconds"] })
  }
}
