// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The variables that speak to this process alone, and that a child must not take for its own.
  ///
  /// - `NOTIFY_SOCKET`: a child that is a daemon itself would report its own readiness and end as the service's.
  /// - `NOTIFY_FD`: the descriptor is not passed on, so in a child the number may be that of something else.
  /// - `LISTEN_PID`, `LISTEN_PIDFDID`, `LISTEN_FDS`, `LISTEN_FDNAMES`: the descriptors are not passed on.
  /// - `WATCHDOG_PID`, `WATCHDOG_USEC`: pings are owed by this process. (Without `WATCHDOG_PID` a child would ping.)
  /// - `FDSTORE`: the store belongs to the service, and without `NOTIFY_SOCKET` it can't be reached.
  ///
  /// The others stay. `INVOCATION_ID` and `JOURNAL_STREAM` are as true of a child: it logs for the same run, and
  /// compares the stream with its own standard error. `SYSTEMD_EXEC_PID` names its process, so a child sees that it is
  /// not meant. Directories, credentials and the pressure of the control group are shared.
  package static let ownVariables: Set<String> = [
    "NOTIFY_SOCKET", "NOTIFY_FD", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES",
    "WATCHDOG_PID", "WATCHDOG_USEC", "FDSTORE",
  ]

  /// The environment for a child process: all variables without those that speak to this process alone, such as
  /// `NOTIFY_SOCKET`, `LISTEN_FDS` and `WATCHDOG_USEC`.
  ///
  /// ```swift
  /// import Foundation
  /// import DaemonSystemd
  ///
  /// let process = Process()
  /// process.executableURL = URL(filePath: "/usr/bin/rsync")
  /// process.environment = ServiceEnvironment.current.childEnvironment()
  /// try ChildProcess.withUnblockedSignals { try process.run() }
  /// ```
  ///
  /// - Parameter changes: Variables to set, in place of those there are. To let a child notify all the same, give it
  ///   `NOTIFY_SOCKET` here; the unit then needs `NotifyAccess=all`.
  public func childEnvironment(adding changes: [String: String] = [:]) -> [String: String] {
    variables
      .filter { !ServiceEnvironment.ownVariables.contains($0.key) }
      .merging(changes) { $1 }
  }
}
