// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// Runs the body of a work as the machine says, each run in a task of its own. It decides nothing.
final class WorkRunner: Sendable {
  typealias Body = @Sendable @isolated(any) (WorkRound) async throws -> Void

  private struct Run {
    let number: UInt64
    let round: WorkRound
    /// `nil` while it is being made.
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private struct State {
    /// The run under way.
    var run: Run?
    /// The last run whose task was made, or is being made: a later run may wait for a thread of Swift's pool.
    var lastBegun: UInt64 = 0
    /// Runs up to this number no longer begin: two threads may perform two actions in either order.
    var lastEnded: UInt64 = 0
  }

  let name: ObserverName
  private let state = Mutex(State())
  private weak let core: LifecycleCore?
  private let body: Body
  /// The caller that waits for its end; `nil` for none.
  private let caller: Sleeper?

  init(
    _ core: LifecycleCore, _ name: ObserverName, caller: Sleeper? = nil, _ body: @escaping Body
  ) {
    (self.core, self.name, self.caller, self.body) = (core, name, caller, body)
  }

  deinit { ReleasePool.release(body) }

  private func tell(_ input: LifecycleMachine.WorkInput, of id: ObserverID) {
    core?.handle(.work(id, input))
  }

  func perform(_ action: Work.Action, of id: ObserverID) {
    switch action {
    case .begin(let run, let isReady): begin(run, isReady: isReady, of: id)
    case .finish(let run): end(run, cancels: false, of: id)
    case .cancel(let run): end(run, cancels: true, of: id)
    case .askForProgress(let run): tellProgress(of: run, of: id)
    case .answer(let failure): caller?.end(throwing: failure?.error)
    }
  }

  // MARK: Runs

  private func begin(_ run: UInt64, isReady: Bool, of id: ObserverID) {
    let round = WorkRound(
      clock: core?.clock, isReady: isReady,
      tellReadiness: { [weak self] lack, change in
        self?.core?.receive(.readiness(run: run, lack: lack, change: change), of: id)
      })
    state.withLock { state in
      if state.lastEnded < run { state.run = Run(number: run, round: round) }
    }
    core?.useSwiftPool { self.start(run, of: id) }
  }

  /// Starts the task of a run, unless the run was ended meanwhile.
  @inline(never) private func start(_ run: UInt64, of id: ObserverID) {
    let round = state.withLock { state -> WorkRound? in
      guard let known = state.run, known.number == run else { return nil }
      state.lastBegun = run
      return known.round
    }
    guard let round else { return }
    // Detached: no task-local value of a hook or a caller marks it as part of that.
    let task = Task.detached(executorPreference: core?.executor.pool) {
      let failure = await self.run(round)
      round.bodyEnded()
      self.ended(run, failure, of: id)
    }
    if keep(task, of: run) { task.cancel() }
  }

  private func run(_ round: WorkRound) async -> Failure? {
    do {
      try await WorkRound.$current.withValue(round) { try await body(round) }
      return nil
    } catch {
      return Failure(error)
    }
  }

  /// Keeps the task of a run. Returns whether the run was cancelled before.
  private func keep(_ task: Task<Void, Never>, of run: UInt64) -> Bool {
    state.withLock { state in
      guard let known = state.run, known.number == run else { return false }
      state.run.update { $0.task = task }
      return known.isCancelled
    }
  }

  @inline(never) private func ended(_ run: UInt64, _ failure: Failure?, of id: ObserverID) {
    // Drops the round, which retains the core.
    state.withLock { $0.run = nil }
    // Many instances of a daemon that fail together should not come back together.
    let share = core?.virtualTime == nil ? Double.random(in: 0.5...1) : 1
    tell(.ended(run: run, failure, share: share), of: id)
  }

  private func end(_ run: UInt64, cancels: Bool, of id: ObserverID) {
    let (known, hasBegun) = state.withLock { state -> (Run?, Bool) in
      state.lastEnded = max(state.lastEnded, run)
      let known = state.run?.number == run ? state.run : nil
      let hasBegun = state.lastBegun >= run
      if known != nil, !hasBegun { state.run = nil }
      if cancels, known != nil { state.run.update { $0.isCancelled = true } }
      return (known, hasBegun)
    }
    // It never begins: Swift's pool had no thread yet, or another thread has yet to perform `.begin`.
    guard hasBegun else { return tell(.ended(run: run, nil), of: id) }
    // The run may just have ended.
    guard let known else { return }
    let handlers = known.round.beginEnding(mayFinish: !cancels)
    core?.useSwiftPool {
      for handler in handlers { handler() }
      if cancels { known.task?.cancel() }
    }
  }

  private func tellProgress(of run: UInt64, of id: ObserverID) {
    let round = state.withLock { $0.run?.number == run ? $0.run?.round : nil }
    if let round {
      tell(.progressed(run: run, at: round.lastProgress, waited: round.lastWait), of: id)
    }
  }
}
