// SPDX-License-Identifier: Apache-2.0
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
  private static let second = BusPeer.Reaction.reply([.variant(.uint64(1_000_000))])

  private func session(
    _ change: (inout BusSession.Options) -> Void = { _ in }
  ) -> BusSession {
    var options = BusTests.options
    change(&options)
    return BusSession(.address(peer.address), options: options)
  }

  // MARK: Connecting

  @Test func connectsWithoutWaiting() {
    peer.answer = { _ in Self.second }
    let session = session()
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["1.0 seconds"] })
    session.close()
    #expect(heard.all == ["1.0 seconds"])
  }

  @Test func absentLibraryIsSaidOnce() {
    let session = session { $0.library = "libnowhere.so.0" }
    let reasons = BusLog<String>()
    session.follow(.stopTimeout) { answer in
      if case .failure(let error) = answer { reasons.append(error.description) }
      return false
    }
    let job = session.note(.unitJob, in: heard)
    session.ask(job)
    session.start()
    #expect(pump(session, nil) { !heard.all.isEmpty })
    #expect(heard.all == ["unavailable"])
    #expect(reasons.all.count == 1 && reasons.all[0].contains("libnowhere.so.0"))
    // Nothing is tried again: the descriptor stays quiet.
    session.process()
    var ready = pollfd(fd: session.fileDescriptor, events: Int16(POLLIN), revents: 0)
    #expect(poll(&ready, 1, 0) == 0)
  }

  @Test func libraryWithoutSdBusIsUnavailable() {
    #expect(clinux_bus_library_problem("libc.so.6") != nil)
  }

  @Test func missingSocketIsSaidOnceAndTriedAgain() {
    peer.stop()
    unlink(peer.path)
    peer.answer = { _ in Self.second }
    let session = session()
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    peer.listen()
    #expect(pump(session, peer) { heard.all.count > 1 })
    #expect(heard.all == ["unavailable", "1.0 seconds"])
  }

  @Test(arguments: [BusPeer.Manner.hangsUpAtOnce, .hangsUpAfterAuthentication])
  func refusalIsUnavailable(manner: BusPeer.Manner) {
    peer.manner = manner
    peer.answer = { _ in Self.second }
    let session = session()
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { peer.connectionCount >= 4 })
    #expect(heard.all == ["unavailable"])
    peer.manner = .welcomes
    #expect(pump(session, peer) { heard.all == ["unavailable", "1.0 seconds"] })
  }

  @Test func peerThatNeverWelcomesIsGivenUp() {
    peer.manner = .neverAnswers
    let session = session { $0.connectTimeout = .milliseconds(30) }
    session.note(.stopTimeout, in: heard)
    let job = session.note(.unitJob, in: heard)
    session.ask(job)
    session.start()
    #expect(pump(session, peer) { peer.connectionCount >= 2 })
    #expect(heard.all == ["unavailable", "unavailable"])
  }

  /// Each attempt waits twice as long as the one before: a slow machine only makes fewer.
  @Test func aBusThatHangsUpIsAskedEverLessOften() {
    peer.manner = .hangsUpAtOnce
    let session = session { options in
      options.firstDelay = .milliseconds(40)
      options.longestDelay = .seconds(3600)
    }
    session.note(.stopTimeout, in: heard)
    let start = MonotonicTime.now()
    session.start()
    for _ in 0..<3 {
      let count = peer.connectionCount
      #expect(pump(session, peer) { peer.connectionCount > count })
    }
    #expect(peer.connectionCount == 3 && start.duration(to: .now()) >= .milliseconds(120))
  }

  /// A delay of nothing would be a loop that never rests.
  @Test func backOffNeverSpins() {
    peer.stop()
    unlink(peer.path)
    let session = session { ($0.firstDelay, $0.longestDelay) = (.zero, .zero) }
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { !heard.all.isEmpty })
    var ready = pollfd(fd: session.fileDescriptor, events: Int16(POLLIN), revents: 0)
    // Before the timer is set, which a busy machine may otherwise find expired.
    let start = MonotonicTime.now()
    session.process()
    _ = poll(&ready, 1, 10_000)
    #expect(start.duration(to: .now()) > .microseconds(100))
  }

  /// Times that are too long for the kernel, or for libsystemd, are long.
  @Test func longestTimes() {
    peer.answer = { _ in Self.second }
    let session = session { options in
      options.callTimeout = .seconds(Int64.max)
      options.connectTimeout = .seconds(Int64.max)
      options.longestDelay = .seconds(Int64.max)
    }
    session.note(.stopTimeout, in: heard)
    session.start()
    #expect(pump(session, peer) { heard.all == ["1.0 seconds"] })
  }

  @Test func lostAndBack() {
    let session = session()
    session.note(.sleep, in: heard)
    let job = session.note(.unitJob, in: heard)
    session.ask(job)
    session.start()
    let descriptor = session.fileDescriptor
    #expect(pump(session, peer) { peer.calls.count == 2 })
    peer.dropClients()
    #expect(pump(session, peer) { heard.all.count >= 2 && peer.calls.count == 3 })
    #expect(heard.all.allSatisfy { $0 == "lost" })
    #expect(session.fileDescriptor == descriptor)
    // The job is asked for once; what is followed is read again.
    #expect(peer.calls.map(\.strings.last) == ["PreparingForSleep", "Job", "PreparingForSleep"])
    peer.signal("PrepareForSleep", of: .logind, from: ":1.10", [.bool(true)])
    #expect(pump(session, peer) { heard.all.last == "asleep" })
  }

  // MARK: What is brought

  @Test func descriptorIsAnOwnDuplicate() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let sent = BusDescriptor(OwnedDescriptor(owning: ends[1]))
    peer.answer = { _ in .reply([.descriptor(sent)]) }
    let session = session()
    let locks = session.delayLocks(.sleep)
    session.start()
    #expect(pump(session, peer) { !locks.all.isEmpty })
    let got = try #require(locks.all.first)
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

  @Test func errorReplyKeepsItsName() {
    peer.answer = { _ in .error("org.freedesktop.DBus.Error.AccessDenied", "no") }
    let session = session()
    let errors = BusLog<BusError>()
    session.follow(.stopTimeout) { answer in
      if case .failure(let error) = answer { errors.append(error) }
      return true
    }
    session.start()
    #expect(pump(session, peer) { !errors.all.isEmpty })
    #expect(errors.all[0].isAccessDenied)
    #expect(
      errors.all[0].description
        == "TimeoutStopUSec was answered with org.freedesktop.DBus.Error.AccessDenied: no")
  }

  @Test func unansweredCallTimesOutAndHoldsNothingUp() {
    peer.answer = { $0.strings.last == "Job" ? .silence : Self.second }
    // Long enough for the answer to the first call, on a busy machine too.
    let session = session { $0.callTimeout = .seconds(2) }
    session.note(.stopTimeout, in: heard)
    let job = session.note(.unitJob, in: heard)
    session.ask(job)
    session.start()
    #expect(pump(session, peer) { heard.all.count == 2 })
    #expect(heard.all == ["1.0 seconds", "late"])
  }

  @Test func stormLeavesRoomForOthers() {
    peer.answer = { _ in .reply([.variant(.bool(false))]) }
    let session = session { $0.stepsAtOnce = 4 }
    session.note(.sleep, in: heard)
    session.start()
    #expect(pump(session, peer) { peer.calls.count == 1 })
    #expect(settle(session, peer))
    for number in 0..<50 {
      peer.signal("PrepareForSleep", of: .logind, from: ":1.10", [.bool(number % 2 == 0)])
    }
    session.process()
    #expect(heard.all.count <= 4)
    #expect(pump(session, nil) { heard.all.count == 50 })
    #expect(heard.all == (0..<50).map { $0 % 2 == 0 ? "asleep" : "awake" })
  }

  // MARK: Ending

  @Test func nothingIsBroughtAfterTheEnd() {
    let session = session()
    let job = session.note(.unitJob, in: heard)
    session.ask(job)
    session.start()
    #expect(pump(session, peer) { peer.calls.count == 1 })
    session.close()
    session.close()
    session.ask(job)
    session.process()
    #expect(heard.all.isEmpty && session.isClosed)
    #expect(pump(session, peer) { !peer.hasClients })
  }

  @Test func closeWithinAHandler() {
    peer.answer = { _ in Self.second }
    let session = session()
    session.follow(.stopTimeout) { [heard, weak session] _ in
      heard.append("first")
      session?.close()
      session?.process()
      return true
    }
    session.note(.delayLimit, in: heard)
    session.start()
    #expect(pump(session, peer) { session.isClosed })
    #expect(heard.all == ["first"])
    #expect(pump(session, peer) { !peer.hasClients })
  }

  /// What is followed and asked never holds the session.
  @Test func sessionThatIsLetGoIsClosed() {
    weak var gone: BusSession?
    do {
      let session = session()
      gone = session
      for matter: BusMatter in [.stopTimeout, .sleep, .shutdown, .userSession, .delayLimit] {
        session.note(matter, in: heard)
      }
      session.start()
      #expect(pump(session, peer) { peer.calls.count == 5 })
    }
    #expect(gone == nil && heard.all.isEmpty)
    #expect(pump(session(), peer) { !peer.hasClients })
  }

  @Test func manyThreadsAskAtOnce() {
    peer.answer = { _ in .reply([.variant(.structure([.uint32(0), .objectPath("/")]))]) }
    let session = session()
    let job = session.note(.unitJob, in: heard)
    session.start()
    let group = DispatchGroup()
    for _ in 0..<4 {
      DispatchQueue.global().async(group: group) { for _ in 0..<50 { session.ask(job) } }
    }
    #expect(pump(session, peer) { group.wait(timeout: .now()) == .success && !heard.all.isEmpty })
    let count = heard.all.count
    session.ask(job)
    #expect(pump(session, peer) { heard.all.count > count })
    #expect(heard.all.allSatisfy { $0 == "no job" })
  }
}
