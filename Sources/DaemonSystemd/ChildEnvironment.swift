// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The variables that are meant for this process only, and must not be passed to a child. With them a child would
  /// report its own readiness as the service's and send its pings; the descriptors are not passed on.
  ///
  /// The other variables are passed. `INVOCATION_ID` and `JOURNAL_STREAM` apply to a child too: it logs for the same
  /// run, and compares the stream with its own standard error. `SYSTEMD_EXEC_PID` contains the process ID, so a child
  /// sees that it is not meant. Directories, credentials and the pressure of the control group are shared.
  package static let ownVariables: Set<String> = [
    "NOTIFY_SOCKET", "NOTIFY_FD", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES",
    "WATCHDOG_PID", "WATCHDOG_USEC", "FDSTORE",
  ]

  /// Returns the environment for a child process: all variables except those for this process only, such as
  /// `NOTIFY_SOCKET`, `LISTEN_FDS` and `WATCHDOG_USEC`, and variables that are not UTF-8, which would be altered.
  ///
  /// ``ChildProcess`` has an example.
  ///
  /// - Parameter changes: Variables to add or replace. To let a child send notifications, add `NOTIFY_SOCKET`; the unit
  ///   then needs `NotifyAccess=all`.
  public func childEnvironment(adding changes: [String: String] = [:]) -> [String: String] {
    variables
      .filter { !ServiceEnvironment.ownVariables.contains($0.key) && !notText.contains($0.key) }
      .merging(changes) { $1 }
  }
}
