// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A body that is run again when it has thrown, according to a policy.
final class RestartingBody: Sendable {
  private let core: LifecycleCore
  private let name: ObserverName
  private let policy: RestartPolicy
  private let body: ForegroundRounds.Body
  /// The failures over all rounds: a pause does not reset them.
  private let history: Mutex<RestartHistory>

  init(
    _ core: LifecycleCore, _ policy: RestartPolicy, _ name: ObserverName,
    _ body: @escaping ForegroundRounds.Body
  ) {
    self.core = core
    self.name = name
    self.policy = policy
    self.body = body
    history = Mutex(RestartHistory(policy))
  }

  /// Runs one round; returns when the body does.
  func run(_ round: ForegroundRound) async throws {
    while true {
      let watch = watchForHealth()
      defer { watch?.cancel() }
      do {
        try await body(round)
        // It has done its work, rather than been stopped.
        if !Task.isCancelled, !round.isEnding { recovered(upTo: lastFailure) }
        return
      } catch {
        // Its end was requested: whatever it throws then, that is no failure.
        if Task.isCancelled || round.isEnding { throw error }
        watch?.cancel()
        let delay = try delay(after: error)
        _ = try await round.untilEnding { [core] in try await core.clock.sleep(for: delay) }
        if round.isEnding { return }
      }
    }
  }

  /// Returns the delay before the next run. Throws the error when it exceeds the policy's maximumFailures.
  @inline(never) private func delay(after error: any Error) throws -> Duration {
    let now = core.clock.now
    // Many instances of a daemon that fail together should not come back together.
    let share = core.virtualTime == nil ? Double.random(in: 0.5...1) : 1
    guard let (delay, number) = history.withLock({ $0.failed(at: now, share: share) }) else {
      throw error
    }
    let most = policy.maximumFailures.map { " of \($0)" } ?? ""
    core.warn(
      "\(name) restarts in \(delay.forReading), after failure \(number)\(most): \(error)")
    let times = number == 1 ? "once" : "\(number) times"
    let note = "\(name) has failed \(times): \(error)"
    history.withLock { $0.note = note }
    sendNote()
    return delay
  }

  /// Sends the note for the operator.
  private func sendNote() {
    StatusNote.restarting("\(name)").publish(
      from: { history.withLock { $0.note } }, to: { core.handle(.fact($0)) })
  }

  /// Reports a recovery when the body has run without a failure for the policy's period; `nil` when nothing has failed.
  private func watchForHealth() -> Task<Void, Never>? {
    guard let last = lastFailure else { return nil }
    return Task.detached { [self] in
      if (try? await core.clock.sleep(for: policy.period)) != nil { recovered(upTo: last) }
    }
  }

  @inline(never) private var lastFailure: LifecycleClock.Instant? { history.withLock { $0.last } }

  /// Takes the note back, since it is not run any more.
  func forget() { if history.withLock({ $0.note.take() }) != nil { sendNote() } }

  /// Forgets the failures, unless there are new ones.
  @inline(never) private func recovered(upTo last: LifecycleClock.Instant?) {
    guard let last, history.withLock({ $0.forget(upTo: last) }) else { return }
    sendNote()
    core.handle(.fact(.recovered))
  }
}
