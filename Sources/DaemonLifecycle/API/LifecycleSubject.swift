// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Dispatch
import Synchronization

/// A daemon's lifecycle: it turns signals and requests of systemd into notifications, and delivers them to observers in
/// order, each with a deadline, with a report of the outcome.
///
/// ```swift
/// @main struct Pollerd {
///   static func main() async throws {
///     let lifecycle = LifecycleSubject()
///     let poller = Poller()
///     lifecycle.addObserver(poller)
///     let exit = try await lifecycle.run {
///       try await lifecycle.foreground {
///         for try await _ in lifecycle.ticks(every: .seconds(1)) { try await poller.poll() }
///       }
///     }
///     Glibc.exit(exit.code)
///   }
/// }
/// ```
///
/// Observers are retained until they are removed or the daemon has ended, unless they were added with
/// ``LifecycleObservable/addObserver(weakly:name:phase:deadline:)``. What the body of `run` captures exists until the
/// last hook has ended.
///
/// It works under an async or a synchronous `main`, in top-level code, and as process 1.
///
/// A process may have several subjects as long as no two of them handle the same signal. Only the first communicates
/// with systemd, since READY=1, STOPPING=1 and watchdog pings apply to the process as a whole; give the others
/// ``SystemdConfiguration/off``.
///
/// When a subject is deallocated, its threads end and the dispositions of its signals are restored. After a
/// `run` with an `exitGrace` they are not, since the process is about to exit and a late signal must not change its
/// status.
public final class LifecycleSubject: LifecycleObservable {
  public let _core: LifecycleCore
  /// From the start on, where there is a service manager.
  private let lease = Mutex<ServiceManagerLease?>(nil)

  /// Makes a subject that changes nothing in the process until `start()` or `run`.
  ///
  /// - Parameter configuration: The settings. Default: those that suit a service.
  public init(configuration: LifecycleConfiguration = LifecycleConfiguration()) {
    _core = LifecycleCore(configuration: configuration, sinks: nil)
  }

  deinit { _core.close() }

  /// The version of this package, as in its change log: `0.2.0`.
  public static var packageVersion: String { "0.2.0" }

  // MARK: Start and stop

  /// Installs the signal handlers, then delivers the launch: DidFinishLaunching and WillEnterForeground.
  ///
  /// Signals that arrive before this returns are not lost: they are delivered after the launch.
  ///
  /// The C library's standard output, which `print` writes to, becomes line buffered where it is no terminal, so that
  /// each printed line appears at once in the journal, a container's log or a pipe. A program that has given it a larger
  /// buffer with setvbuf(3), or none, keeps that.
  ///
  /// - Returns: The report of the launch.
  /// - Throws: `LifecycleError` when it could not start; then nothing has been changed.
  @discardableResult
  nonisolated(nonsending) public func start() async throws -> LifecycleReport {
    try listen()
    return await core.launch()
  }

  /// Returns when the daemon has terminated: for use after `start()`, in place of `run`.
  ///
  /// As at the end of `run`, a caller that is not isolated continues on the subject's own thread, and `exitGrace`
  /// begins when the last hook has ended.
  ///
  /// - Returns: The status to exit with, and the report of the termination.
  nonisolated(nonsending) public func waitUntilTerminated() async -> LifecycleExit {
    core.handle(.runWaits)
    return await core.untilTerminated()
  }

  /// Installs the signal handlers and delivers the launch, as the async `start()`, and blocks the calling thread until
  /// the launch is over.
  ///
  /// `@MainActor` hooks can't run while the main thread is blocked; the report lists them as problems.
  @available(*, noasync)
  @discardableResult
  public func start() throws -> LifecycleReport {
    try listen()
    return core.launchBlocking()
  }

  /// Blocks the calling thread until the daemon has terminated, as the async `waitUntilTerminated()` waits for that.
  @available(*, noasync)
  public func waitUntilTerminated() -> LifecycleExit {
    core.handle(.runWaits)
    return core.untilTerminatedBlocking()
  }

  /// Restores the dispositions that the signals had before `start()`, without ending anything.
  ///
  /// Deliveries and everything else go on; only signals no longer reach the subject.
  public func restoreSignals() { core.closeSources { $0 is SignalSource } }

  private func listen() throws {
    try core.markStarted()
    let configuration = core.configuration
    let systemd = configuration.systemd
    let lease = systemd.isSupervised ? ServiceManagerLease.take() : nil
    do {
      try core.listen(
        to: SignalSource(
          map: configuration.signals, isSupervised: lease != nil, waker: core.executor.poll.waker))
    } catch {
      core.markStopped()
      throw error
    }
    // Nothing fails from here on, so a start that failed has changed nothing.
    clinux_line_buffer_output()
    DispatchPreparation.begin()
    self.lease.withLock { $0 = lease }
    let integration = ServiceIntegration(configuration, isSupervised: lease != nil)
    core.integrate(
      LifecycleMachine.Policy(
        configuration: configuration.settled(on: integration.platform),
        hasServiceManager: integration.sinks.contains { $0.isServiceManager },
        watchdogPeriod: integration.watchdogPeriod),
      sinks: integration.sinks, readiness: integration.readiness,
      asksForUnitJob: integration.asksForUnitJob)
    for problem in integration.problems { integration.warn(problem) }
    integration.notePlatform()
    // A daemon works without any of these.
    for source in integration.sources {
      do { try core.listen(to: source) } catch { integration.warn("\(error)") }
    }
    DispatchPreparation.finish()
  }

  // MARK: Run

  /// Starts, runs `body`, and returns when the daemon has terminated.
  ///
  /// The body runs in its own task. When the termination begins, that task is cancelled and waited for, like a hook,
  /// before state is saved; a body that does not end is abandoned. When the body returns or throws, the daemon
  /// terminates. Cancelling the calling task terminates the daemon too.
  ///
  /// A caller that is not isolated continues on the subject's own thread until it suspends again, so `exit(exit.code)`
  /// works even while Swift's cooperative pool is blocked. A process that is still running `exitGrace` later is ended
  /// with the same code. With Swift 6.2 the caller continues once the pool is free; until then only `exitGrace` ends
  /// the process.
  ///
  /// - Parameter body: The daemon's work, in its own isolation.
  /// - Returns: The status to exit with, and the report of the termination.
  /// - Throws: `LifecycleError` when it could not start. What the body throws is in the exit.
  nonisolated(nonsending) public func run(
    _ body: sending @escaping @isolated(any) () async throws -> Void
  ) async throws -> LifecycleExit {
    try await run(RunBody(body))
  }

  /// Starts, and returns when the daemon has terminated: ``run(_:)`` without a body.
  nonisolated(nonsending) public func run() async throws -> LifecycleExit {
    try await run(nil as RunBody?)
  }

  nonisolated(nonsending) private func run(_ body: RunBody?) async throws -> LifecycleExit {
    try listen()
    let core = core
    // Not only when this task gets there: without a thread for its next step it never does, and the process must end
    // all the same.
    core.handle(.runWaits)
    return await withTaskCancellationHandler {
      _ = await core.launch()
      if let body, !core.isTerminating { core.start(body: body) }
      let exit = await core.untilTerminated()
      // What the body owns, observers among them, is needed until here.
      withExtendedLifetime(body) {}
      return exit
    } onCancel: {
      core.receive(LifecycleEvent(.terminate, cause: LifecycleCause(.callerCancelled)))
    }
  }

  /// Runs the daemon from a synchronous `main`, and exits the process with the exit's code. When it could not start, it
  /// prints the reason on standard error and exits with 71 (EX_OSERR).
  ///
  /// Call it on the main thread: it runs the main queue there, so that `@MainActor` observers work.
  ///
  /// - Parameter body: The daemon's work, in its own isolation.
  public func runAndExit(
    _ body: sending @escaping @isolated(any) () async throws -> Void
  ) -> Never {
    runAndExit(RunBody(body))
  }

  /// Runs the daemon from a synchronous `main` and exits the process: ``runAndExit(_:)`` without a body.
  public func runAndExit() -> Never { runAndExit(nil as RunBody?) }

  private func runAndExit(_ body: RunBody?) -> Never {
    Task.detached(executorPreference: core.callerExecutor) {
      do {
        let result = try await self.run(body)
        CLinux.exit(result.code)
      } catch {
        let environment = self.core.configuration.systemd.environment
        StandardError.writeLine(
          "\(error)", .error, isJournal: StandardError.isJournal(environment))
        CLinux.exit(71)
      }
    }
    if clinux_is_main_thread() { dispatchMain() }
    while true { sleep(.max) }
  }
}
