// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// Set-up, launch, exit and posts, for callers that wait. One message of the machine resumes each. The continuations of
// the launch and the exit are unsafe ones: the type of a checked one costs a start a search through all conformances.
extension LifecycleCore {
  /// Launches the daemon, and returns when it has terminated.
  package nonisolated(nonsending) func run() async -> LifecycleExit {
    // The closure is not isolated: otherwise it would continue on the cooperative pool, which may be blocked.
    return await withTaskExecutorPreference(callerExecutor) {
      await withTaskCancellationHandler {
        _ = await launch()
        return await untilTerminated()
      } onCancel: {
        receive(LifecycleEvent(.terminate, cause: LifecycleCause(.callerCancelled)))
      }
    }
  }

  /// The same after a set-up. Throws the set-up's error, unless the daemon has ended by then.
  nonisolated(nonsending) func run(after work: SetUpBody) async throws -> LifecycleExit {
    // The set-up's closure holds the subject, whose deinit would close this core.
    defer { withExtendedLifetime(work) {} }
    do { try await setUp(work) } catch  where exit == nil { throw error } catch {}
    return await run()
  }

  /// Runs the set-up on the cooperative pool, and waits for it. The end of the daemon cancels it.
  private nonisolated(nonsending) func setUp(_ work: SetUpBody) async throws {
    let task = Task.detached {
      try await SetUp.$current.withValue(SetUp(core: ObjectIdentifier(self))) {
        try await work.run()
      }
    }
    let reminder = Sleeper { [weak self] in self?.handle(.fact(.settingUp(SetUp.patience))) }
    schedule(reminder, at: now.advanced(by: SetUp.patience))
    keep(setUp: task)
    defer {
      keep(setUp: nil)
      remove(reminder)
    }
    handle(
      .awaitExit { [weak self] _ in
        guard let self, let setUp = state.withLock({ $0.setUp }) else { return }
        cancel(setUp)
      })
    try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  /// Whether a set-up is this core's, and the daemon has not been launched since.
  func isBeforeLaunch(of setUp: SetUp?) -> Bool {
    setUp?.core == ObjectIdentifier(self) && lifecycleState == .launching
  }

  @inline(never) private func keep(setUp task: Task<Void, any Error>?) {
    state.withLock { $0.setUp = task }
  }

  /// Delivers the launch and returns its report; at once, with an empty one, if the daemon was terminated before.
  nonisolated(nonsending) func launch() async -> LifecycleReport {
    await withUnsafeContinuation { continuation in
      handle(.launch { continuation.resume(returning: $0) })
    }
  }

  /// Returns on the executor's thread when its caller is not isolated: the caller then continues without the
  /// cooperative pool until it suspends again.
  ///
  /// A caller that exits the process after that sends `.exitExpected` first.
  nonisolated(nonsending) func untilTerminated() async -> LifecycleExit {
    await withTaskExecutorPreference(callerExecutor) {
      let exit = await withUnsafeContinuation { continuation in
        self.handle(.awaitExit { continuation.resume(returning: $0) })
      }
      // The caller may end the process. It is waited for here, not on the thread that listens.
      configuration.logQueue?.finish()
      return exit
    }
  }

  nonisolated(nonsending) func post(_ notification: any CustomNotification) async
    -> LifecycleReport
  {
    harness?.didCall("post(\(notification))")
    if isBeforeLaunch(of: SetUp.current) {
      handle(.post(LifecyclePost(notification), inside: nil))
      return LifecycleReport(cause: LifecycleCause(.api), entries: [])
    }
    let inside = HookCall.current.flatMap { $0.core === self ? $0.id : nil }
    let round = WorkRound.current.flatMap { $0.clock?.keeper === self ? $0 : nil }
    // The main actor's queue needs a thread of Dispatch's, too.
    let post = AwaitedPost(
      notification, isOfPool: isOfSwiftPool() || #isolation === MainActor.shared)
    // A pause that waits for the poster, which it has cancelled or whose round it ends, must not keep the post waiting.
    let handler = round?.add { self.handle(.hasten(post)) }
    defer { handler.map { round?.removeHandler($0) } }
    return await withTaskCancellationHandler {
      // A checked continuation, whose hand-over the thread sanitizer knows.
      await withCheckedContinuation { continuation in
        post.answer = { continuation.resume(returning: $0) }
        let input = LifecycleMachine.Input.post(post, inside: inside)
        let isDelayed = harness.map { self.isDelayed(input, by: $0) } ?? false
        if !isDelayed { handle(input) }
        // The poster was cancelled, or its round awaited, before the core had the post.
        if Task.isCancelled || round?.isAwaited == true { handle(.hasten(post)) }
      }
    } onCancel: {
      handle(.hasten(post))
    }
  }
}

/// A notification whose poster waits for the report.
///
/// `@unchecked`, as its superclass is: `answer` is written once, before the core, which alone reads it, has the post.
final class AwaitedPost: LifecyclePost, @unchecked Sendable {
  /// Whether the poster needs a thread of Swift's pool, or of Dispatch's, to continue.
  let isOfPool: Bool
  fileprivate(set) var answer: @Sendable (LifecycleReport) -> Void = { _ in }

  init(_ notification: any CustomNotification, isOfPool: Bool) {
    self.isOfPool = isOfPool
    super.init(notification)
  }
}

/// The closure that sets a daemon up, retained until the end: observers that only it owns must exist to save.
final class SetUpBody: Sendable {
  /// Called once. The caller has sent its captures, and has no access to them any more.
  nonisolated(unsafe) private let body: @isolated(any) () async throws -> Void

  init(_ body: sending @escaping @isolated(any) () async throws -> Void) {
    self.body = body
  }

  func run() async throws { try await body() }
}
