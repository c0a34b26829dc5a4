// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// What the lifecycle asks of systemd and logind, while these are away.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusFollowerTests {
  private let peer = BusPeer()
  private let session: BusSession
  private let inbox = BusInbox()
  private static let away = BusPeer.Reaction.error(
    "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has this name")

  init() {
    session = BusSession(.address(peer.address), options: BusTests.options)
  }

  private func begin(_ follower: any BusFollower) {
    follower.begin(on: session, inbox)
    session.start()
  }

  /// Longer than the longest delay between two attempts.
  private func waitAWhile() {
    let end = MonotonicTime.after(.milliseconds(100))
    #expect(pump(session, peer) { MonotonicTime.now() >= end })
  }

  /// All inputs up to the first that `matches`.
  private func inputs(until matches: (LifecycleInput) -> Bool) -> [LifecycleInput] {
    var all: [LifecycleInput] = []
    let isThere = pump(session, peer) {
      all += inbox.take()
      return all.contains(where: matches)
    }
    #expect(isThere, "\(all)")
    return all
  }

  private func isRemark(_ kind: StatusNote, _ text: String?) -> (LifecycleInput) -> Bool {
    { if case .statusNote(kind, text) = $0 { true } else { false } }
  }

  private func isComplaint(_ input: LifecycleInput) -> Bool {
    if case .warning = input { true } else { false }
  }

  // MARK: TimeoutStopSec=

  @Test func stopTimeoutIsLearntThoughSystemdWasAway() {
    peer.answer = { _ in Self.away }
    let reader = StopTimeoutReader()
    begin(reader)
    #expect(pump(session, peer) { peer.calls.count >= 3 })
    peer.answer = { _ in .reply([.variant(.uint64(6_000_000))]) }
    let inputs = inputs { if case .stopTimeout(.seconds(6)) = $0 { true } else { false } }
    // It was over so soon that nobody needs to know.
    #expect(inputs.count == 1)
    withExtendedLifetime(reader) {}
    session.close()
  }

  @Test func stopTimeoutIsReadFromAManagerThatWasReexecuted() {
    peer.answer = { _ in .reply([.variant(.uint64(6_000_000))]) }
    let reader = StopTimeoutReader()
    begin(reader)
    _ = inputs { if case .stopTimeout(.seconds(6)) = $0 { true } else { false } }
    peer.answer = { _ in .reply([.variant(.uint64(9_000_000))]) }
    peer.setOwner(of: BusObject.systemd.destination, to: ":1.7")
    _ = inputs { if case .stopTimeout(.seconds(9)) = $0 { true } else { false } }
    withExtendedLifetime(reader) {}
    session.close()
  }

  /// A manager that stays away is reported, once.
  @Test func aStopTimeoutThatStaysUnknownIsReported() {
    peer.answer = { _ in Self.away }
    let reader = StopTimeoutReader()
    begin(reader)
    let inputs = inputs(until: isComplaint)
    guard case .warning(let text)? = inputs.last else { return }
    #expect(text.hasSuffix("The daemon goes on without: TimeoutStopSec=."))
    let count = peer.calls.count
    #expect(pump(session, peer) { peer.calls.count >= count + 3 })
    #expect(inbox.take().isEmpty)
    withExtendedLifetime(reader) {}
    session.close()
  }

  // MARK: Units, and the user's session

  /// A unit that is not up is a reason for the background; one that is unknown is in STATUS=.
  @Test func unitsAreReasons() {
    peer.answer = { call in
      guard call.member == "GetAll" else { return .reply([]) }
      let isKnown = call.path.hasSuffix("/db_2eservice")
      return .reply([
        .properties([
          "LoadState": .string(isKnown ? "loaded" : "not-found"),
          "ActiveState": .string(isKnown ? "activating" : "inactive"),
        ])
      ])
    }
    let follower = UnitFollower(["db.service", "typo.service", "no unit"])
    begin(follower)
    let inputs = inputs(
      until: isRemark(
        .watched,
        "not watched: \"no unit\" is not the name of a unit, there is no unit typo.service"))
    let isPaused = inputs.contains {
      guard case .event(let event) = $0, case .pause(for: let reason) = event.request else {
        return false
      }
      return reason.name == "db.service"
        && "\(event.cause)".contains("db.service is activating")
    }
    #expect(isPaused, "\(inputs)")
    withExtendedLifetime(follower) {}
    session.close()
  }

  /// What shares a reason makes one line, and is said once.
  @Test func warningsAreSharedAndSaidOnce() {
    let lost = BusError(.unavailable, "There is no bus: gone.")
    for _ in 0..<2 { for matter in ["a", "b"] { inbox.warn(lost, without: matter) } }
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

  // MARK: Delay locks

  /// What logind answers that grants every lock.
  private func grant() throws -> (BusPeer.Reaction, end: Int32) {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let sent = BusDescriptor(OwnedDescriptor(owning: ends[1]))
    return (.reply([.descriptor(sent)]), ends[0])
  }

  /// The member that was asked for decides, since a watch reads properties too.
  private func answerInhibit(with reaction: BusPeer.Reaction) {
    peer.answer = { call in
      call.member == "Inhibit" ? reaction : .reply([.variant(.bool(false))])
    }
  }

  private func inhibits() -> Int { peer.calls.count { $0.member == "Inhibit" } }

  /// Each matter, the follower that needs the lock, and what is in STATUS= meanwhile.
  private static let followers: [(StatusNote, @Sendable () -> any BusFollower, String)] = [
    (.delayLock, { SleepFollower() }, "no delay lock: a suspend does not wait for the hooks"),
    (.shutdownLock, { ShutdownFollower() }, "no delay lock: a shutdown does not wait for the save"),
  ]

  @Test(arguments: [0, 1]) func aLockIsTakenThoughLogindWasAway(_ index: Int) throws {
    let (statusNote, make, text) = Self.followers[index]
    answerInhibit(with: Self.away)
    let follower = make()
    begin(follower)
    var inputs = inputs(until: isRemark(statusNote, text))
    #expect(pump(session, peer) { inhibits() >= 3 })
    let (granted, end) = try grant()
    defer { close(end) }
    answerInhibit(with: granted)
    inputs += self.inputs(until: isRemark(statusNote, nil))
    // Said once, however often it was asked.
    #expect(inputs.count(where: isRemark(statusNote, text)) == 1)
    #expect(inputs.count(where: isComplaint) == 1)
    withExtendedLifetime(follower) {}
    session.close()
  }

  /// Without polkit there is no point in asking again, until another logind may say something else.
  @Test func aDeniedLockIsAskedForAgainOfANewLogind() throws {
    answerInhibit(with: .error("org.freedesktop.DBus.Error.AccessDenied", "Permission denied"))
    let (statusNote, make, text) = Self.followers[0]
    let follower = make()
    begin(follower)
    _ = inputs(until: isRemark(statusNote, text))
    waitAWhile()
    #expect(inhibits() == 1)
    let (granted, end) = try grant()
    defer { close(end) }
    answerInhibit(with: granted)
    peer.setOwner(of: BusObject.logind.destination, to: ":1.7")
    _ = inputs(until: isRemark(statusNote, nil))
    withExtendedLifetime(follower) {}
    session.close()
  }

  /// logind keeps its locks when it is restarted: no second one is taken.
  @Test func aLockThatIsHeldIsNotAskedForAgain() throws {
    let (granted, end) = try grant()
    defer { close(end) }
    answerInhibit(with: granted)
    let lock = DelayLock(.sleep, .delayLock, consequence: "")
    lock.begin(on: session, inbox)
    session.start()
    #expect(pump(session, peer) { lock.isHeld })
    peer.setOwner(of: BusObject.logind.destination, to: ":1.7")
    waitAWhile()
    #expect(inhibits() == 1 && lock.isHeld)
    session.close()
  }
}
