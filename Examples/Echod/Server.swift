import DaemonSystemd
import Foundation
import Synchronization

/// The thread that serves the clients, as the lifecycle's hooks see it.
final class Server: Sendable {
  private let mailbox = Mailbox()

  init(_ restored: Restored, _ settings: Settings, _ preservation: Preservation) throws(SystemError)
  {
    try mailbox.open()
    let mailbox = mailbox
    let thread = Thread {
      Loop(restored, settings, preservation, mailbox).run()
      mailbox.close()
    }
    thread.name = "echod-loop"
    thread.start()
  }

  deinit { mailbox.post { $0.stop() } }

  /// Accepts, or not; returns at once.
  func serve() { mailbox.post { $0.enter(.serving) } }
  func stopAccepting() { mailbox.post { $0.enter(.quiet) } }
  func apply(_ settings: Settings) { mailbox.post { $0.settings = settings } }

  /// Accepts nobody any more, and ends each connection when it is idle: how many there are.
  func drain() async -> Int {
    await ask(orElse: 0) { loop, reply in
      loop.enter(.draining)
      reply(loop.connections.count)
    }
  }

  /// How many clients there are: an answer means that the loop turns.
  func count() async -> Int {
    await ask(orElse: 0) { loop, reply in reply(loop.connections.count) }
  }

  /// Ends all connections, as `Loop.finish(by:_:)`, and the thread.
  func finish(within limit: Duration) async -> Loop.Ending {
    await ask(orElse: Loop.Ending()) { loop, reply in
      loop.acceptTheLast()
      loop.finish(by: .now + limit, reply)
    }
  }

  /// Hands all connections over, as `Loop.handOver(answersFirst:_:)`, and ends the thread; if that fails it goes on.
  func handOver(answersFirst: Bool) async throws -> Loop.Handed {
    try await ask(orElse: .success(Loop.Handed())) { loop, reply in
      loop.handOver(answersFirst: answersFirst, reply)
    }.get()
  }

  /// Runs `body` on the loop's thread; it, or what it starts, replies once. After the thread's end: `last`.
  private func ask<Answer: Sendable>(
    orElse last: Answer,
    _ body: @escaping @Sendable (Loop, @escaping @Sendable (Answer) -> Void) -> Void
  ) async -> Answer {
    await withCheckedContinuation { continuation in
      mailbox.post { loop in
        body(loop) { continuation.resume(returning: $0) }
      } tooLate: {
        continuation.resume(returning: last)
      }
    }
  }
}

/// What other threads want of the loop's: work for it, and a socket that wakes it.
final class Mailbox: Sendable {
  struct Command: Sendable {
    let run: @Sendable (Loop) -> Void
    /// The loop has ended before.
    let tooLate: @Sendable () -> Void
  }

  private struct State {
    var commands: [Command] = []
    var isOpen = false
    /// The reading and the writing end, while it is open.
    var ends: [Int32] = [-1, -1]
  }
  private let state = Mutex(State())

  var wake: Int32 { state.withLock { $0.ends[0] } }

  func open() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    let type = Sockets.stream | Sockets.closeOnExec | Sockets.nonBlocking
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError("make a socket pair") }
    state.withLock {
      $0.ends = ends
      $0.isOpen = true
    }
  }

  func post(
    _ run: @escaping @Sendable (Loop) -> Void, tooLate: @escaping @Sendable () -> Void = {}
  ) {
    let isHeard = state.withLock { state in
      guard state.isOpen else { return false }
      state.commands.append(Command(run: run, tooLate: tooLate))
      _ = send(state.ends[1], "!", 1, Int32(MSG_NOSIGNAL))  // full means that it is awake
      return true
    }
    if !isHeard { tooLate() }
  }

  func take() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  func drain() {
    var bytes = [UInt8](repeating: 0, count: 256)
    while recv(wake, &bytes, bytes.count, 0) > 0 {}
  }

  /// The loop has ended: what is left, and what comes, is too late.
  func close() {
    let left = state.withLock { state in
      state.isOpen = false
      for end in state.ends { Foundation.close(end) }
      state.ends = [-1, -1]
      defer { state.commands = [] }
      return state.commands
    }
    for command in left { command.tooLate() }
  }
}
