// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import TestSupport
import Testing

@testable import echod

/// Whole restarts of the server in this process: mocks with one service manager are its runs.
@Suite final class RestartTests {
  private let manager: FakeServiceManager
  private let path: String

  init() throws {
    manager = try FakeServiceManager(descriptorStoreLimit: 16)
    path = shortTemporaryFolder + "echod-\(UUID().uuidString.prefix(8))"
  }

  deinit { unlink(path) }

  /// One run: a daemon that has been launched.
  private func run() async throws -> (mock: MockLifecycleSubject, service: EchoService) {
    let mock = MockLifecycleSubject(state: .launching, serviceManager: manager)
    var options = Options()
    options.listen = path
    let service = EchoService(mock, options)
    let report = try await mock.launch()
    try #require(report.problems.isEmpty, "\(report)")
    return (mock, service)
  }

  private func end(
    _ run: (mock: MockLifecycleSubject, service: EchoService), _ job: UnitJob?
  ) async throws {
    run.mock.setUnitJob(job)
    let report = try await run.mock.send(.sigterm)
    #expect(report.problems.isEmpty, "\(report)")
  }

  private func stored() -> [String] { manager.storedDescriptors.map(\.name).sorted() }

  @Test func aRestartKeepsHalfLines() async throws {
    let first = try await run()
    let peer = try Peer(path)
    peer.send("one\ntw")
    #expect(peer.hears("one\n"))
    try await end(first, .restart)
    #expect(stored() == ["c1", "own-listener", "state"])
    // Nobody is there, and nobody is refused.
    peer.send("o\nthr")
    let other = try Peer(path)
    other.send("hello\n")

    let second = try await run()
    #expect(peer.hears("two\n") && other.hears("hello\n"))
    try await eventually { self.stored() == ["c1", "c2", "own-listener"] }
    try await end(second, .tryRestart)
    let third = try await run()
    peer.send("ee\n")
    #expect(peer.hears("three\n"))
    try await end(third, .stop)
    #expect(peer.hearsTheEnd && other.hearsTheEnd)
    #expect(manager.violations == [])
  }

  /// Answers that the peer has not read go on where they stopped.
  @Test func aRestartKeepsUnsentAnswers() async throws {
    let first = try await run()
    let peer = try Peer(path)
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
    // Both sockets and the output are full.
    let sent = peer.sendUntilFull(line, beyond: Conversation.outputLimit)
    try await end(first, .restart)
    let second = try await run()
    peer.endSending()
    let answers = peer.receive(sent + 2000)
    // The last line was cut off by the full socket; it is a line all the same.
    #expect(answers.utf8.count == sent + (sent % 1000 == 0 ? 0 : 1))
    #expect(answers.split(separator: "\n").dropLast().allSatisfy { $0.utf8.count == 999 })
    try await end(second, .stop)
  }

  /// Nobody says what comes: the answers are there, and so is the connection.
  @Test func withoutAJobItDoesBoth() async throws {
    let first = try await run()
    let peer = try Peer(path)
    peer.send("one\ntwo\nha")
    try await end(first, nil)
    #expect(peer.hears("one\ntwo\n"))
    let second = try await run()
    peer.send("lf\n")
    #expect(peer.hears("half\n"))
    try await end(second, .stop)
  }

  @Test func whoHasLeftIsForgotten() async throws {
    let first = try await run()
    for number in 1...20 {
      let peer = try Peer(path)
      peer.send("\(number)\n")
      #expect(peer.hears("\(number)\n"))
      peer.endSending()
      #expect(peer.hearsTheEnd)
    }
    #expect(stored() == ["own-listener"])
    let lasting = try Peer(path)
    try await eventually { self.stored() == ["c21", "own-listener"] }
    lasting.endSending()
    #expect(lasting.hearsTheEnd && stored() == ["own-listener"])
    try await end(first, .stop)
    #expect(manager.violations == [])
  }

  /// 16 places: the listener, the state, and 14 connections.
  @Test func thoseWithoutAPlaceAreFinished() async throws {
    let first = try await run()
    let peers = try (1...20).map { _ in try Peer(path) }
    for peer in peers {
      peer.send("one\n")
      #expect(peer.hears("one\n"))
    }
    try await eventually { self.stored().count == 15 }
    try await end(first, .restart)
    #expect(stored().count == 16 && manager.violations == [])
    let second = try await run()
    for peer in peers[..<14] {
      peer.send("two\n")
      #expect(peer.hears("two\n"))
    }
    for peer in peers[14...] { #expect(peer.hearsTheEnd) }
    try await end(second, .stop)
  }

  // MARK: Limits

  /// A run with a client that is idle, and one with half a line.
  private func runWithHalfALine() async throws -> (
    run: (mock: MockLifecycleSubject, service: EchoService), idle: Peer, busy: Peer
  ) {
    let run = try await run()
    let (idle, busy) = (try Peer(path), try Peer(path))
    idle.send("one\n")
    busy.send("two\nhalf")
    #expect(idle.hears("one\n") && busy.hears("two\n"))
    return (run, idle, busy)
  }

  /// And a restart from there hands them over, as from the foreground.
  @Test func aSuspendLeavesWhoIsThere() async throws {
    let (first, idle, busy) = try await runWithHalfALine()
    first.mock.inject(.sleep)
    try await first.mock.waitUntilSettled()
    #expect(first.mock.state == .background)
    idle.send("three\n")
    #expect(idle.hears("three\n"))
    try await end(first, .restart)
    let second = try await self.run()
    busy.send(" a line\n")
    #expect(busy.hears("half a line\n"))
    try await end(second, .stop)
  }

  /// It waits for the drain, and then hands over who is left.
  @Test func aRestartWhileItDrainsLosesNothing() async throws {
    let (first, idle, busy) = try await runWithHalfALine()
    first.mock.inject(.sigusr1)
    #expect(idle.hearsTheEnd)
    first.mock.setUnitJob(.restart)
    first.mock.inject(.sigterm)
    await first.mock.advance(by: .seconds(10))
    try await first.mock.waitUntilSettled()
    let second = try await self.run()
    busy.send(" a line\n")
    #expect(busy.hears("half a line\n"))
    try await end(second, .stop)
  }

  /// The reader has taken none of its answers.
  @Test func whoIsNotOverInAStopsTimeIsCutOffAndSaid() async throws {
    let run = try await run()
    let (idle, slow) = (try Peer(path), try Peer(path))
    idle.send("one\n")
    #expect(idle.hears("one\n"))
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
    _ = slow.sendUntilFull(line, beyond: Conversation.outputLimit)
    run.mock.setUnitJob(.stop)
    run.mock.inject(.sigterm)
    #expect(idle.hearsTheEnd)
    await run.mock.advance(by: .seconds(10))
    try await run.mock.waitUntilSettled()
    let exit = try #require(run.mock.exitResult)
    #expect(
      exit.exitStatus == 124 && exit.report.problems.map(\.observer) == ["EchoService"], "\(exit)")
    guard case .timedOut = exit.report.problems.first?.outcome else {
      Issue.record("\(exit)")
      return
    }
    #expect(stored() == ["own-listener"])
  }

  /// Of a version of tomorrow, which was gone back from.
  @Test func aHandoverThatIsNoneLosesNoConnection() async throws {
    let first = try await run()
    let peer = try Peer(path)
    peer.send("one\n")
    #expect(peer.hears("one\n"))
    try await end(first, .restart)
    let store = try NotifySocket(address: manager.address)
    let unknown = try OwnedDescriptor.memory(named: "x", Array("not ours".utf8))
    try store.removeStored(named: "state")
    try store.store(unknown.rawValue, named: "state", polled: false)
    let later = try OwnedDescriptor.memory(named: "y", [])
    try store.store(later.rawValue, named: "later", polled: false)
    let second = try await run()
    peer.send("two\n")
    #expect(peer.hears("two\n"))
    #expect(stored() == ["c1", "own-listener"])
    try await end(second, .stop)
  }
}
