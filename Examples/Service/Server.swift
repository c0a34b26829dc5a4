import DaemonLifecycle
import Foundation

/// The server's loop: accepts until its task is cancelled, with a child task for each connection.
///
/// Cancellation means the same everywhere here: begin nothing new, and return soon. The loop accepts nobody any
/// more, a connection takes no further request, and an answer under way has `grace` to be finished. So whoever
/// cancels `serve()` and waits for it, as `foreground` does, has drained the server.
struct Server: Sendable {
  let listener: Socket
  private let clock: LifecycleClock
  private let say: @Sendable (String) -> Void
  /// Shorter than the deadline of the hook that waits for the drain (`LifecycleConfiguration.hookDeadline`, 10 s).
  private let grace = Duration.seconds(5)

  init(_ listener: Socket, clock: LifecycleClock, say: @escaping @Sendable (String) -> Void) {
    (self.listener, self.clock, self.say) = (listener, clock, say)
  }

  /// Throws `CancellationError` when the task was cancelled and the last connection has ended.
  func serve() async throws {
    // Discarding: it keeps nothing of connections that have ended. The end of its scope waits for the others.
    try await withThrowingDiscardingTaskGroup { group in
      while true {
        try await listener.wait(until: .readable)
        do {
          while !Task.isCancelled, let client = try listener.accept() {
            group.addTask { await converse(with: client) }
          }
        } catch {
          // Out of descriptors, for instance, which those who leave will give back. No reason to end the others.
          say("\(error)")
          try await clock.sleep(for: .milliseconds(100))
        }
      }
    }
  }

  private func converse(with client: Socket) async {
    defer { client.end() }
    do {
      var lines = Lines(of: client)
      // A wait for the next line is cut off by a cancellation. What has come and is not answered, the client may
      // send again elsewhere: it hears the end of the connection after the last answer.
      while !Task.isCancelled, let line = try await lines.next() {
        try await finish { try await client.send(answer(to: line)) }
      }
    } catch is CancellationError {
    } catch { say("\(error)") }
  }

  /// Goes on when this task is cancelled, but not for longer than `grace`.
  private func finish(_ work: @escaping @Sendable () async throws -> Void) async throws {
    // Not a child, which would be cancelled along with us.
    let task = Task { try await work() }
    try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      Task {
        try? await clock.sleep(for: grace)
        task.cancel()
      }
    }
  }

  // MARK: What it serves

  private func answer(to line: String) async throws -> String {
    let words = line.split(separator: " ")
    switch (words.first, words.dropFirst().first.flatMap { Double($0) }) {
    case ("time", nil) where words.count == 1: return Date.now.formatted(.iso8601)
    case ("wait", let seconds?) where words.count == 2 && (0...60).contains(seconds):
      try await clock.sleep(for: .seconds(seconds))
      return "waited \(words[1]) s"
    default: return "error: say \"time\", or \"wait\" and a number of seconds up to 60"
    }
  }
}
