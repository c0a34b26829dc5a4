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
  ///       lifecycle.addForeground(name: "polling") { try await poller.work(lifecycle) }
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
  /// that is the journal's, and exits: with the status of an ``ExitStatusError``, else with 71 (EX_OSERR).
  ///
  /// Call it on the main thread: it runs the main queue there, so that `@MainActor` observers work.
  ///
  /// - Parameters:
  ///   - configuration: The settings. Default: those that suit a service.
  ///   - setUp: Adds observers and work, in its own isolation. The launch follows when it returns.
  public static func runAndExit(
    _ configuration: @autoclosure () -> LifecycleConfiguration = LifecycleConfiguration(),
    _ setUp: sending @escaping @isolated(any) (LifecycleSubject) async throws -> Void
  ) -> Never {
    // Held until there are handlers.
    var (all, before) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    let lifecycle = LifecycleSubject(configuration: configuration())
    do { try lifecycle.listen() } catch {
      lifecycle.exitProcess(because: error)
    }
    pthread_sigmask(SIG_SETMASK, &before, nil)
    let core = lifecycle.core
    let work = RunBody { try await setUp(lifecycle) }
    Task.detached(executorPreference: core.callerExecutor) {
      do { try await core.setUp(work) } catch  where core.exit == nil {
        lifecycle.exitProcess(because: error)
      } catch {
        // The daemon has ended, and it was cancelled.
      }
      exit(await core.run(nil).status)
    }
    if clinux_is_main_thread() { dispatchMain() }
    while true { sleep(.max) }
  }

  private func exitProcess(because error: any Error) -> Never {
    let failure = Failure(error)
    Journal.writeLine(failure.text, .error, environment: core.configuration.systemd.environment)
    exit(error is any ExitStatusError ? failure.exitStatus : 71)
  }
}
