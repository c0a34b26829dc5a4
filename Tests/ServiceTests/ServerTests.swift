// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleTesting
import Foundation
import TestSupport
import Testing

@testable import clockd

/// The server's loop in the foreground of a lifecycle, with time in the test's hand.
@Suite(.timeLimit(.minutes(5))) struct ServerTests {
  private let mock = MockLifecycleSubject()
  private let server: Server
  private let address: String

  init() throws {
    server = Server(try Socket(listeningOn: 0), clock: mock.clock) { print($0) }
    address = "127.0.0.1:\(server.listener.port)"
  }

  private func run() async throws -> Task<Void, any Error> {
    try await mock.waitUntilSettled()
    return Task { [mock, server] in
      try await mock.foreground(name: "clients", draining: .seconds(20)) { round in
        try await server.serve(round)
      }
    }
  }

  /// Peers block, which the few threads of Swift's pool are not for.
  private func peer<Result: Sendable>(
    _ body: @escaping @Sendable (Peer) -> Result
  ) async throws -> Result {
    let address = address
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Swift.Result { body(try Peer(address)) })
      }
    }
  }

  @Test func anAnswerUnderWayIsFinishedAndNoOtherBegun() async throws {
    let serving = try await run()
    async let heard = peer { peer in
      peer.send("wait 3\nwait 4\n")
      return peer.receive(1000)
    }
    try await mock.waitUntilSleeping()
    mock.inject(.sigusr1)
    await mock.advance(by: .seconds(3))
    #expect(try await heard == "waited 3 s\n")
    let report = try await mock.waitUntilSettled()
    #expect(report.problems.isEmpty, "\(report)")
    #expect(mock.state == .background)
    try await mock.send(.sigterm)
    try await serving.value
  }

  @Test func aLineThatIsTooLongEndsItsConnectionOnly() async throws {
    let serving = try await run()
    let heard = try await peer { peer in
      peer.send([UInt8](repeating: UInt8(ascii: "x"), count: 5000))
      return peer.receive(1000)
    }
    #expect(heard == "")
    #expect(
      try await peer {
        $0.send("wait 0\n")
        return $0.receive(11)
      } == "waited 0 s\n")
    try await mock.send(.sigterm)
    try await serving.value
  }

  /// Whatever is cancelled: a wait that has begun, and one that has not.
  @Test func aWaitEndsWhenItIsCancelled() async throws {
    let server = server
    for delay in [Duration.zero, .milliseconds(20)] {
      let task = Task { try await server.listener.wait(until: .readable) }
      try await Task.sleep(for: delay)
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }
}
