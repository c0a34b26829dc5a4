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
  /// The signals of the map are handled before `setUp` begins: none of them kills the process, and what they request is
  /// delivered after the launch. A terminating signal ends the daemon without a launch: `setUp` is cancelled and waited
  /// for, within the exit grace.
  ///
  /// When it could not start, or `setUp` throws, it prints the reason on standard error, after the program's name unless
  /// that is the journal's (a log of your own receives it instead), and exits: with the status of an ``ExitStatusError``,
  /// else with 71 (EX_OSERR).
  ///
  /// Call it on the main thread: it runs the main queue there, so that `@MainActor` observers work. Under an asynchronous
  /// `main`, whose main actor it would block, use `run`; the compiler refuses it there, and a call that it does not see
  /// is logged.
  ///
  /// - Parameters:
  ///   - configuration: The settings, computed before signals are handled; an error ends the process as one of `setUp`.
  ///     Default: those that suit a service.
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

  /// Sets a daemon up, runs it, and returns when it has terminated: ``runAndExit(configuration:_:)`` for a caller that is
  /// asynchronous, or goes on.
  ///
  /// ```swift
  /// let end = try await LifecycleSubject.run { lifecycle in
  ///   lifecycle.addObserver(orders)
  ///   lifecycle.addForeground(name: "work") { try await work() }
  /// }
  /// exit(end.exitStatus)  // throw ExitCode(end.exitStatus) in an AsyncParsableCommand
  /// ```
  ///
  /// It does not end the process, but for a third terminating signal. So what a hook has left behind goes on, and a caller
  /// whose executor is blocked does not. Cancelling the calling task terminates the daemon.
  ///
  /// - Returns: The status to exit with, and the report of the termination.
  /// - Throws: `LifecycleError` when it could not start, and what `setUp` throws.
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
