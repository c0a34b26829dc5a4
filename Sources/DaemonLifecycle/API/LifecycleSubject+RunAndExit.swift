// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Dispatch

extension LifecycleSubject {
  /// Sets a daemon up, runs it, and exits the process with its status: all of a synchronous `main`.
  ///
  /// ```swift
  /// @main struct MyDaemon {
  ///   static func main() {
  ///     LifecycleSubject.runAndExit { lifecycle in
  ///       let poller = try Poller()
  ///       lifecycle.addObserver(poller)
  ///       lifecycle.addForeground { try await poller.work(lifecycle) }
  ///     }
  ///   }
  /// }
  /// ```
  ///
  /// The signals of the map are handled before `setUp` begins: none of them kills the process, and their requests are
  /// delivered after the launch. A terminating signal ends the daemon without a launch: `setUp` is cancelled and waited
  /// for, within the exit grace.
  ///
  /// When the start fails or `setUp` throws, it prints the reason on standard error (after the program's name, unless
  /// the journal reads it) or in a log of your own, and exits with the status of an ``ExitStatusError``, else with 71
  /// (EX_OSERR).
  ///
  /// Call it on the main thread: its `dispatchMain()` has `@MainActor` observers run, on other threads. With a run loop use
  /// `run`: see <doc:ThreadsAndExecutors>. Under an asynchronous `main` it would block the main actor: use `run`, too. The
  /// compiler refuses it there; a call that it does not see is logged.
  ///
  /// - Parameters:
  ///   - configuration: The settings, computed before signals are handled; an error ends the process like an error of
  ///     `setUp`. Default: those that suit a service.
  ///   - setUp: Adds observers and work, in its own isolation. The launch follows when it returns.
  @available(*, noasync, message: "It would block the main actor: use run.")
  public static func runAndExit(
    configuration: @autoclosure () throws -> LifecycleConfiguration = LifecycleConfiguration(),
    _ setUp: sending @escaping @isolated(any) (LifecycleSubject) async throws -> Void
  ) -> Never {
    let settings: LifecycleConfiguration
    do { settings = try configuration() } catch { exitProcess(because: error) }
    let lifecycle = LifecycleSubject(configuration: settings)
    do { try lifecycle.listen() } catch { exitProcess(because: error, settings) }
    if withUnsafeCurrentTask(body: { $0 != nil }) {
      lifecycle.core.warn(
        "runAndExit was called in a task: code of the main actor does not run while that waits. Use run."
      )
    }
    let work = SetUpBody { try await setUp(lifecycle) }
    // Sent now: without a free thread the task may never get further, but the process must still end.
    lifecycle.expectExit()
    Task.detached(executorPreference: lifecycle.core.callerExecutor) {
      do {
        exit(try await lifecycle.core.run(after: work).exitStatus)
      } catch {
        exitProcess(because: error, settings)
      }
    }
    if clinux_is_main_thread() { dispatchMain() }
    while true { sleep(.max) }
  }

  /// Sets a daemon up, runs it, and returns when it has terminated: ``runAndExit(configuration:_:)`` for a caller that
  /// is asynchronous, or goes on afterwards.
  ///
  /// ```swift
  /// let end = try await LifecycleSubject.run { lifecycle in
  ///   lifecycle.addObserver(orders)
  ///   lifecycle.addForeground(name: "work") { try await work() }
  /// }
  /// exit(end.exitStatus)  // throw ExitCode(end.exitStatus) in an AsyncParsableCommand
  /// ```
  ///
  /// Only a third terminating signal, or a lost lease, ends the process. Otherwise an abandoned hook goes on, and a
  /// caller whose executor is blocked does not. Cancelling the calling task terminates the daemon.
  ///
  /// - Returns: The status to exit with, and the report of the termination.
  /// - Throws: `LifecycleError` when the start fails, and the errors of `configuration` and `setUp`.
  nonisolated(nonsending) public static func run(
    configuration: @autoclosure () throws -> LifecycleConfiguration = LifecycleConfiguration(),
    _ setUp: sending @escaping @isolated(any) (LifecycleSubject) async throws -> Void
  ) async throws -> LifecycleExit {
    let lifecycle = LifecycleSubject(configuration: try configuration())
    do {
      try lifecycle.listen()
      return try await lifecycle.core.run(after: SetUpBody { try await setUp(lifecycle) })
    } catch {
      lifecycle.core.configuration.logQueue?.finish()
      throw error
    }
  }

  private static func exitProcess(
    because error: any Error, _ settings: LifecycleConfiguration? = nil
  ) -> Never {
    let failure = Failure(error)
    if let queue = settings?.logQueue {
      queue.add(LifecycleLogEntry(failure.text, priority: .error))
      queue.finish()
    } else {
      Journal.writeLine(failure.text, .error, environment: settings?.environment ?? .current)
    }
    exit(failure.exitStatus ?? 71)
  }
}
