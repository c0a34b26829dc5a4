// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A function that starts child processes with no signal blocked, so that they can be stopped.
///
/// A child inherits the signal mask of the thread that starts it, and keeps it through exec(3). Dispatch and Swift's
/// concurrency block SIGTERM, SIGHUP, SIGINT and most other signals in their threads. So a child that is started from
/// an `async` function does not receive SIGTERM from `kill` or systemd, and runs until SIGKILL.
public enum ChildProcess {
  /// Runs `body`, which starts a child, with no signal blocked in this thread.
  ///
  /// ```swift
  /// import DaemonSystemd
  /// import Foundation
  ///
  /// let process = Process()
  /// process.executableURL = URL(filePath: "/usr/bin/rsync")
  /// process.environment = ServiceEnvironment.current.childEnvironment()
  /// try ChildProcess.withUnblockedSignals { try process.run() }
  /// ```
  ///
  /// A child still ignores the signals that this process ignores. Signals with a handler may be handled in this thread
  /// meanwhile.
  ///
  /// - Throws: The error that `body` throws.
  public static func withUnblockedSignals<T, E: Error>(_ body: () throws(E) -> T) throws(E) -> T {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body()
  }
}
