// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Dispatch
import Synchronization

/// A daemon's lifecycle: turns signals and systemd's state into notifications and delivers them to observers, in
/// order, in time, with a report.
///
///     @main struct Pollerd {
///       static func main() async throws {
///         let lifecycle = LifecycleSubject()
///         let poller = Poller()
///         lifecycle.addObserver(poller)
///         let exit = try await lifecycle.run {
///           try await lifecycle.foreground {
///             for try await _ in lifecycle.ticks(every: .seconds(1)) { try await poller.poll() }
///           }
///         }
///         Glibc.exit(exit.code)
///       }
///     }
///
/// Observers are held weakly, so something must own them: what the body of `run` captures lives until the
/// last hook has ended; without a body, end the function that owns them with
/// `withExtendedLifetime(poller) {}`.
///
/// Works under an async or a synchronous `main`, in top-level code, and as process 1. A process may have
/// several subjects as long as no two claim the same signal. Only the first speaks with systemd, since
/// READY=1, STOPPING=1 and pings are the process's and not a subject's; give the others
/// `SystemdConfiguration.off`.
/// When a subject goes away, so do its threads, and every signal's disposition is put back; but not after a
/// `run` with an `exitGrace`, which ends the process, so that a late signal can't change how it ends.
public final class LifecycleSubject: LifecycleObservable {
  public var _core: LifecycleCore { core }
  package let core: LifecycleCore
  private let signals: SignalSource
  private let integration: ServiceIntegration

  /// Makes a subject that changes nothing in the process until `start()` or `run`.
  ///
  /// - Parameter configuration: Its settings. Default: what suits a service.
  public init(configuration: LifecycleConfiguration = LifecycleConfiguration()) {
    integration = ServiceIntegration(configuration)
    core = LifecycleCore(
      configuration: configuration.settled(on: integration.platform), sinks: integration.sinks,
      readiness: integration.readiness, watchdogPeriod: integration.watchdogPeriod,
      asksForUnitJob: integration.asksForUnitJob, killRule: integration.killRule)
    signals = SignalSource(
      map: configuration.signals, isSupervised: integration.isSupervised,
      waker: core.executor.poll.waker)
  }

  /// Makes a subject that changes nothing in the process until `start()` or `run`.
  @available(*, deprecated, renamed: "init(configuration:)")
  public convenience init(_ configuration: LifecycleConfiguration) {
    self.init(configuration: configuration)
  }

  deinit { core.close() }

  /// The version of this package, as in its change log: `0.2.0`.
  public static var packageVersion: String { "0.2.0" }

  // MARK: Start and stop

  /// Installs the signal handlers, then delivers the launch: DidFinishLaunching and WillEnterForeground.
  ///
  /// Signals that come before this returns are not lost: they are delivered after the launch.
  ///
  /// - Returns: The report of the launch.
  /// - Throws: `LifecycleError` when it could not start; then nothing has been changed.
  @discardableResult
  nonisolated(nonsending) public func start() async throws -> LifecycleReport {
    try listen()
    return await core.launch()
  }

  /// Returns when the daemon has terminated: after `start()`, for those who do not use `run`.
  ///
  /// As at the end of `run`, a caller that is not isolated goes on, on the subject's own thread, and
  /// `exitGrace` begins with the last hook.
  nonisolated(nonsending) public func waitUntilTerminated() async -> LifecycleExit {
    await core.untilTerminated()
  }

  /// As the other ``start()``, for a plain thread, which it blocks until the launch is over.
  ///
  /// `@MainActor` hooks can't run while the main thread is blocked: they are reported so.
  ///
  /// - Returns: The report of the launch.
  /// - Throws: `LifecycleError` when it could not start; then nothing has been changed.
  @available(*, noasync)
  @discardableResult
  public func start() throws -> LifecycleReport {
    try listen()
    return core.launchBlocking()
  }

  /// Blocks a plain thread until the daemon has terminated: as the other ``waitUntilTerminated()``.
  @available(*, noasync)
  public func waitUntilTerminated() -> LifecycleExit {
    core.blocking { [core] in await core.untilTerminated() }
  }

  /// Gives the signals back: they mean again what they meant before `start()`. Ends nothing.
  ///
  /// Deliveries that have begun go on, and so does everything else: only signals no longer arrive.
  public func restoreSignals() { core.closeSources { $0 is SignalSource } }

  @available(
    *, unavailable,
    message: "to end the daemon: terminate(); to give its signals back: restoreSignals()"
  )
  public func stop() { restoreSignals() }

  private func listen() throws(LifecycleError) {
    try core.markStarted()
    if core.configuration.lineBuffersOutput { clinux_line_buffer_output() }
    DispatchPreparation.begin()
    do { try core.listen(to: signals) } catch {
      core.markStopped()
      throw error
    }
    for problem in integration.problems { integration.warn(problem) }
    integration.notePlatform()
    // A daemon that lacks one of these does its work all the same.
    for source in integration.sources {
      do { try core.listen(to: source) } catch { integration.warn("\(error)") }
    }
    DispatchPreparation.finish()
  }

  // MARK: Run

  /// Starts, runs `body`, and returns when the daemon has terminated.
  ///
  /// The body is a task of its own. It is cancelled when the termination begins, and waited for, like a
  /// hook, before state is saved; one that does not end is abandoned. When it returns, or throws, the
  /// daemon terminates. Cancelling the calling task terminates the daemon too.
  ///
  /// A caller that is not isolated goes on, after this returns, on the subject's own thread until it
  /// suspends again, so `exit(exit.code)` works even while Swift's cooperative pool is blocked. A process
  /// that still lives `exitGrace` later is ended with the same code.
  /// With Swift 6.2 the caller goes on once the pool is free, or `exitGrace` ends the process.
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
    // Not when it gets there: without a thread for its next step, it never does, and the process must end all the same.
    core.handle(.runWaits)
    return await withTaskCancellationHandler {
      _ = await core.launch()
      if let body, !core.isTerminating { core.start(body: body) }
      let exit = await core.untilTerminated()
      // Only now: what the body owns, observers among them, has been needed until here.
      withExtendedLifetime(body) {}
      return exit
    } onCancel: {
      core.receive(LifecycleEvent(.terminate, cause: LifecycleCause(.callerCancelled)))
    }
  }

  /// Runs the daemon from a synchronous `main` and exits the process with the exit's code; 71 (EX_OSERR)
  /// and a line on standard error when it could not start.
  ///
  /// Called on the main thread, which it gives to the main queue, so that `@MainActor` observers work.
  public func runAndExit(
    _ body: sending @escaping @isolated(any) () async throws -> Void
  ) -> Never {
    runAndExit(RunBody(body))
  }

  /// Runs the daemon from a synchronous `main` without a body: as ``runAndExit(_:)``.
  public func runAndExit() -> Never { runAndExit(nil as RunBody?) }

  private func runAndExit(_ body: RunBody?) -> Never {
    Task.detached(executorPreference: core.callerExecutor) {
      do {
        let result = try await self.run(body)
        endProcess(result.code)
      } catch {
        let environment = self.core.configuration.systemd.environment
        StandardError.writeLine(
          "\(error)", .error, isJournal: StandardError.isJournal(environment))
        endProcess(71)
      }
    }
    if clinux_is_main_thread() { dispatchMain() }
    while true { sleep(.max) }
  }
}

extension LifecycleCore {
  func markStarted() throws(LifecycleError) {
    let isFirst = state.withLock { state in
      defer { state.isStarted = true }
      return !state.isStarted
    }
    guard isFirst else { throw .alreadyStarted }
  }

  func markStopped() { state.withLock { $0.isStarted = false } }
}

/// exit(3), where `exit` is how the daemon has ended.
private func endProcess(_ code: Int32) -> Never { exit(code) }
