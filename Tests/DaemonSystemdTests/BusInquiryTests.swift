import Synchronization
import TestSupport
import Testing

@testable import DaemonSystemd

/// A question that is asked until it is answered, put to a bus of our own.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusInquiryTests {
  private let peer = BusPeer()
  private let answers = BusLog<Duration?>()
  private static let away = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has this name")
  private static let second = BusPeer.Reaction.reply([.variant(.uint64(1_000_000))])

  private func session(firstDelay: Duration = .milliseconds(1)) -> BusSession {
    var options = BusTests.options
    options.firstDelay = firstDelay
    let session = BusSession(.address(peer.address), options: options)
    session.start()
    return session
  }

  private func inquiry(_ session: BusSession) -> BusInquiry {
    let manager = Systemd1(session)
    return BusInquiry(Systemd1.service, on: session) { [answers] settled in
      manager.timeoutStop { answer in
        if case .success(let timeout) = answer { answers.append(timeout) }
        settled((try? answer.get()) != nil)
      }
    }
  }

  /// Until what has been asked so far is answered, and a while later.
  private func settle(_ session: BusSession) -> Bool {
    let done = Mutex(false)
    session.perform(after: .milliseconds(50)) { _ in done.withLock { $0 = true } }
    return pump(session, peer) { done.withLock { $0 } }
  }

  @Test func askedUntilAnsweredAndNotAgain() {
    let peer = peer
    var refusals = 5
    peer.answer = { _ in
      refusals -= 1
      return refusals >= 0 ? Self.away : Self.second
    }
    let session = session()
    let inquiry = inquiry(session)
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(settle(session))
    #expect(answers.all == [.seconds(1)] && peer.calls.count == 6)
    withExtendedLifetime(inquiry) {}
    session.close()
  }

  /// The next attempt would be in an hour.
  @Test func askedAtOnceWhenTheServiceHasANewOwner() {
    peer.answer = { _ in Self.away }
    let session = session(firstDelay: .seconds(3600))
    let inquiry = inquiry(session)
    #expect(pump(session, peer) { peer.calls.count == 1 })
    #expect(settle(session))
    peer.answer = { _ in Self.second }
    peer.setOwner(of: Systemd1.service, to: ":1.7")
    #expect(pump(session, peer) { answers.all.count == 1 })
    // The answer of a manager that was re-executed may be another one.
    peer.setOwner(of: Systemd1.service, to: ":1.8")
    #expect(pump(session, peer) { answers.all.count == 2 })
    withExtendedLifetime(inquiry) {}
    session.close()
  }

  @Test func aNewOwnerOutdatesAnAnswerThatIsAwaited() {
    peer.answer = { _ in .silence }
    let session = session(firstDelay: .seconds(3600))
    let settlements = BusLog<@Sendable (Bool) -> Void>()
    let inquiry = BusInquiry(Systemd1.service, on: session) { settlements.append($0) }
    #expect(pump(session, peer) { settlements.all.count == 1 })
    // So that the bus has said who owns the name.
    #expect(settle(session))
    peer.setOwner(of: Systemd1.service, to: ":1.7")
    #expect(settle(session) && settlements.all.count == 1)
    settlements.all[0](true)
    #expect(settlements.all.count == 2)
    settlements.all[1](true)
    #expect(settle(session) && settlements.all.count == 2)
    withExtendedLifetime(inquiry) {}
    session.close()
  }

  @Test func askedAgainOnTheNextConnection() {
    peer.answer = { _ in .hangUp }
    let session = session()
    let inquiry = inquiry(session)
    #expect(pump(session, peer) { peer.connectionCount >= 3 })
    peer.answer = { _ in Self.second }
    #expect(pump(session, peer) { !answers.all.isEmpty })
    #expect(settle(session) && answers.all == [.seconds(1)])
    withExtendedLifetime(inquiry) {}
    session.close()
  }

  @Test func endsWithTheLastReference() {
    peer.answer = { _ in Self.away }
    let session = session()
    var inquiry: BusInquiry? = inquiry(session)
    #expect(pump(session, peer) { peer.calls.count >= 2 })
    withExtendedLifetime(inquiry) {}
    inquiry = nil
    // One that was on its way may still arrive.
    #expect(settle(session))
    let count = peer.calls.count
    #expect(settle(session) && peer.calls.count == count)
    session.close()
  }

  @Test func whatIsDelayedIsRefusedAtTheEnd() {
    let session = session()
    let errors = BusLog<BusError>()
    session.perform(after: .seconds(3600)) {
      if case .failure(let error) = $0 { errors.append(error) }
    }
    #expect(settle(session) && errors.all.isEmpty)
    session.close()
    #expect(errors.all == [.closed])
    session.perform(after: .seconds(3600)) {
      if case .failure(let error) = $0 { errors.append(error) }
    }
    #expect(errors.all == [.closed, .closed])
  }
}
