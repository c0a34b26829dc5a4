import Synchronization

// The beginning and the end, for those who wait: launch, body, exit; and posts.
extension LifecycleCore {
  /// Delivers the launch and returns its report; at once, with an empty one, when there is nothing to launch
  /// because the daemon was terminated before.
  nonisolated(nonsending) func launch() async -> LifecycleReport {
    readiness?.prepare()
    return await withTaskExecutorPreference(callerExecutor) {
      await withCheckedContinuation { continuation in
        self.change { state, now in
          // Nothing to launch: terminated, or a mock that was made in a later state.
          if state.machine.isTerminating || state.machine.registry.state != .launching {
            let report = LifecycleReport(cause: LifecycleCause(.launch), entries: [])
            state.outbox.append { continuation.resume(returning: report) }
          } else {
            state.launchWaiters.append(continuation)
          }
          let launch = LifecycleEvent(.launch, cause: LifecycleCause(.launch))
          state.handle(.event(launch), at: now)
        }
      }
    }
  }

  /// Runs the body as a task of its own on the cooperative pool: it can be abandoned like a hook.
  ///
  /// Not when the daemon terminates already. In one step with looking, so that it either never begins or is
  /// waited for.
  func start(body: RunBody) {
    change { state, now in
      guard !state.machine.isTerminating else { return }
      state.bodyTask = Task.detached {
        do {
          try await body.run()
          self.handle(.bodyEnded(nil))
        } catch {
          self.handle(.bodyEnded(Failure(error)))
        }
      }
      state.handle(.bodyBegan, at: now)
    }
  }

  /// Returns on the executor's thread when its caller is not isolated: the caller then goes on without the
  /// cooperative pool until it suspends again.
  nonisolated(nonsending) func untilTerminated() async -> LifecycleExit {
    await withTaskExecutorPreference(callerExecutor) {
      await withCheckedContinuation { continuation in
        self.change { state, now in
          if let exit = state.machine.stop.exit {
            state.outbox.append { continuation.resume(returning: exit) }
          } else {
            state.exitWaiters.append(continuation)
          }
          state.handle(.runWaits, at: now)
        }
      }
    }
  }

  /// Waits for `operation` on a plain thread. It runs on the executor's threads, since Swift's pool may be blocked.
  func blocking<T: Sendable>(_ operation: @escaping @Sendable () async -> T) -> T {
    let result = BlockingResult<T>()
    Task.detached(executorPreference: callerExecutor) { result.set(await operation()) }
    return result.wait()
  }

  nonisolated(nonsending) func post(_ notification: any CustomNotification) async
    -> LifecycleReport
  {
    if let recorder {
      recorder.didPost(notification)
      endSetUp()
    }
    let inside = HookCall.current.flatMap { $0.core === self ? $0.id : nil }
    return await withCheckedContinuation { continuation in
      change { state, now in
        let id = PostID(value: state.newID())
        state.posters[id] = continuation
        state.handle(.post(notification, id, inside: inside), at: now)
      }
    }
  }
}

/// The body of `run`, kept until the end: observers that only the body owns must live to save.
final class RunBody: Sendable {
  /// Called once. Its captures were sent here by the caller, who has no access to them any more.
  nonisolated(unsafe) private let body: @isolated(any) () async throws -> Void

  init(_ body: sending @escaping @isolated(any) () async throws -> Void) { self.body = body }

  func run() async throws { try await body() }
}

/// What a plain thread waits for.
private final class BlockingResult<T: Sendable>: Sendable {
  private let value = Mutex<T?>(nil)
  private let isThere = Semaphore()

  func set(_ result: T) {
    value.withLock { $0 = result }
    isThere.signal()
  }

  func wait() -> T {
    isThere.wait()
    return value.withLock { $0! }
  }
}
