// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Foundation
import TestSupport
import Testing

@testable import echod

/// What systemd keeps of connections while its queue is full.
@Suite final class KeepingTests {
  /// Stands in for systemd's notify socket: what is sent waits in its queue until somebody reads.
  private let queue: Int32
  private let path: String
  private var ends: [Int32] = [-1, -1]
  private let keeping: Keeping

  init() throws {
    path = shortTemporaryFolder + "keeping-\(UUID().uuidString.prefix(8))"
    queue = try unixSocket(SOCK_DGRAM, at: path, bind)
    keeping = try Self.keeping(path, limit: 4)
    let type = Sockets.stream | Sockets.closeOnExec | Sockets.nonBlocking
    try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
  }

  private static func keeping(_ path: String, limit: Int) throws -> Keeping {
    Keeping(
      Preservation(
        passed: try PassedDescriptors(), notify: try NotifySocket(address: path), limit: limit))
  }

  deinit {
    unlink(path)
    for descriptor in ends + [queue] where descriptor >= 0 { close(descriptor) }
  }

  private func connection(_ id: Int, isPreserved: Bool = false) -> Connection {
    Connection(id: id, socket: ends[0], isPreserved: isPreserved)
  }

  /// Until the queue has no room for anybody: each sender's own buffer may be full before (net.unix.max_dgram_qlen).
  private func fillQueue() throws {
    var sent = 0
    repeat {
      let notify = try NotifySocket(address: path)
      sent = 0
      do {
        while true {
          try notify.send([.watchdog], timeout: .zero)
          sent += 1
        }
      } catch {
        // Not a pattern of the catch: Swift 6.2's compiler breaks on it.
        guard case .system(_, EAGAIN) = error else { throw error }
      }
    } while sent > 0
  }

  /// The messages that wait in the queue.
  private func takeAll() -> [String] {
    var all: [String] = []
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(queue, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      if count < 0 { return all }
      all.append(String(decoding: bytes[..<count], as: UTF8.self))
    }
  }

  private var hasPeerEnded: Bool {
    var byte: UInt8 = 0
    return recv(ends[1], &byte, 1, 0) == 0
  }

  @Test func aPeerGetsItsEndThoughSystemdCannotBeTold() throws {
    let duplicate = dup(ends[0])  // systemd's
    defer { close(duplicate) }
    try fillQueue()
    keeping.giveUp(connection(7, isPreserved: true))
    close(ends[0])
    ends[0] = -1
    #expect(hasPeerEnded)
    // It is told later.
    let due = try #require(keeping.due)
    _ = takeAll()
    keeping.work([:], at: due)
    let told = takeAll()
    #expect(told.count == 1 && told[0].contains("FDSTOREREMOVE=1") && told[0].contains("c7"))
    #expect(keeping.due == nil)
  }

  /// So long after now, everybody has lasted.
  private func later(_ duration: Duration = Keeping.probation) -> ContinuousClock.Instant {
    .now + duration
  }

  @Test func aConnectionIsKeptOnceItHasLasted() throws {
    let connection = connection(8)
    keeping.add(connection)
    let due = try #require(keeping.due)
    #expect(due <= later())
    keeping.work([8: connection], at: connection.accepted + Keeping.probation / 2)
    #expect(!connection.isPreserved && keeping.due != nil)
    keeping.work([8: connection], at: later())
    #expect(connection.isPreserved && keeping.due == nil)
    #expect(takeAll().filter { $0.contains("FDSTORE=1") && $0.contains("c8") }.count == 1)
  }

  /// Each message costs systemd's process 1 time, and it hears them before everything else.
  @Test func whoOnlyConnectsIsNothingToTellSystemd() throws {
    for id in 1...1000 {
      let connection = connection(id)
      keeping.add(connection)
      keeping.giveUp(connection)
    }
    #expect(keeping.due == nil && takeAll().isEmpty)
  }

  /// The queue here holds fewer than that: what it does not take is not lost.
  @Test func systemdIsToldOfSoManyInASecondAndNoMore() throws {
    let keeping = try Self.keeping(path, limit: 4096)
    let connections = Dictionary(uniqueKeysWithValues: (1...200).map { ($0, connection($0)) })
    for connection in connections.values { keeping.add(connection) }
    var rounds: [Int] = []
    while let due = keeping.due {
      keeping.work(connections, at: max(due, later()))
      rounds.append(takeAll().count)
    }
    #expect(rounds.allSatisfy { $0 <= Keeping.batch } && rounds.reduce(0, +) == 200)
    #expect(connections.values.filter(\.isPreserved).count == 200)
  }

  @Test func aConnectionThatCouldNotBeKeptIsKeptLater() throws {
    try fillQueue()
    let connection = connection(8)
    keeping.add(connection)
    keeping.work([8: connection], at: later())
    #expect(!connection.isPreserved && keeping.due != nil)
    _ = takeAll()
    keeping.work([8: connection], at: later(.seconds(10)))
    #expect(connection.isPreserved && keeping.due == nil)
    #expect(takeAll().contains { $0.contains("FDSTORE=1") && $0.contains("c8") })
  }

  /// As at the end of a run, which can't wait.
  @Test func aYoungConnectionIsKeptAtTheEnd() throws {
    let connection = connection(8)
    keeping.add(connection)
    let isKept = keeping.keep(connection, timeout: .zero)
    #expect(isKept && connection.isPreserved && keeping.due == nil)
  }

  /// 4 places, of which one is the state's.
  @Test func aPlaceThatBecomesFreeIsUsed() throws {
    let connections = (1...4).map { connection($0) }
    let known = Dictionary(uniqueKeysWithValues: connections.map { ($0.id, $0) })
    for connection in connections { keeping.add(connection) }
    keeping.work(known, at: later())
    #expect(connections.map(\.isPreserved) == [true, true, true, false])
    #expect(keeping.due == nil)
    keeping.giveUp(connections[0])
    #expect(keeping.due != nil)
    keeping.work(known, at: later(.seconds(10)))
    #expect(connections[3].isPreserved && keeping.due == nil)
  }

  // MARK: Descriptors

  @Test(arguments: [(UInt64(8192), Int32(8128)), (64, 48), (0, 0), (.max, .max)])
  func theLastDescriptorsAreTheDaemonsOwn(_ allowed: UInt64, _ end: Int32) {
    #expect(DescriptorLimit(allowed: allowed).end == end)
  }

  @Test func theNextNumberSaysHowManyAreInUse() throws {
    let next = try #require(Sockets.nextNumber(besides: queue))
    #expect(DescriptorLimit(allowed: 1 << 20).hasRoom(besides: queue))
    #expect(!DescriptorLimit(allowed: UInt64(next / 2)).hasRoom(besides: queue))
  }
}
