import Synchronization

/// A question to a service that is asked until it is answered.
///
/// It is asked on each connection, and whenever the service has a new owner, since what the old one answered may be
/// outdated. While there is no answer it is asked again, after the session's first delay and at last after its longest:
/// a service that restarts refuses calls for a moment.
///
/// It ends with the last reference to it.
package final class BusInquiry: Sendable {
  /// Asks once, inside `BusSession.process` or on a thread that called `ask`, and calls `settled` once: with `false` if
  /// the question has to be asked again later.
  package typealias Question = @Sendable (_ settled: @escaping @Sendable (Bool) -> Void) -> Void

  private enum Phase {
    /// There is an answer, or no connection; next: asking.
    case idle
    /// Awaits `settled`; next: idle or waiting, or asking if meanwhile something has outdated the answer.
    case asking(isOutdated: Bool)
    /// Until the attempt of this number; next: asking, or idle if there is no connection then.
    case waiting(UInt64)
  }

  private enum Step {
    case none, ask
    case wait(Duration, attempt: UInt64)
  }

  private struct State {
    var phase = Phase.idle
    var backOff: BusBackOff
    /// The number of the last attempt that was waited for, so that one that was overtaken is recognised.
    var lastAttempt: UInt64 = 0
  }

  private let question: Question
  private let state: Mutex<State>
  private let connections = Mutex<BusWatch?>(nil)
  /// Weak: the session's observers hold what asks.
  private weak let session: BusSession?

  package init(_ service: String, on session: BusSession, _ question: @escaping Question) {
    self.question = question
    self.session = session
    state = Mutex(State(backOff: session.backOff))
    let watch = session.observe(
      BusSessionObserver(connected: { [weak self] connection in
        connection.onNewOwner(of: service) { [weak self] _ in self?.ask() }
        self?.ask()
      }))
    connections.withLock { $0 = watch }
  }

  /// Asks now, or again as soon as the answer that is awaited has come.
  package func ask() {
    let fresh = session?.backOff
    let isFree = state.withLock { state in
      if let fresh { state.backOff = fresh }
      if case .asking = state.phase {
        state.phase = .asking(isOutdated: true)
        return false
      }
      state.phase = .asking(isOutdated: false)
      return true
    }
    if isFree { question { [weak self] in self?.settled($0) } }
  }

  private func settled(_ isAnswered: Bool) {
    let step = state.withLock { state -> Step in
      if case .asking(isOutdated: true) = state.phase {
        state.phase = .idle
        return .ask
      }
      if isAnswered {
        state.phase = .idle
        return .none
      }
      state.lastAttempt += 1
      state.phase = .waiting(state.lastAttempt)
      return .wait(state.backOff.take(), attempt: state.lastAttempt)
    }
    switch step {
    case .none: break
    case .ask: ask()
    case .wait(let delay, let attempt):
      session?.perform(after: delay) { [weak self] connection in
        self?.retry(attempt, isConnected: (try? connection.get()) != nil)
      }
    }
  }

  /// Without a connection the next one asks.
  private func retry(_ attempt: UInt64, isConnected: Bool) {
    let asks = state.withLock { state in
      guard case .waiting(attempt) = state.phase else { return false }
      state.phase = isConnected ? .asking(isOutdated: false) : .idle
      return isConnected
    }
    if asks { question { [weak self] in self?.settled($0) } }
  }
}
