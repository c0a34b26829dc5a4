// SPDX-License-Identifier: Apache-2.0
extension WorkRound {
  /// Runs `operation`, and asks logind to refuse the machine's sleep, and its shutdown, until it ends, like UIKit's
  /// background task.
  ///
  /// ```swift
  /// try await round.keepingAwake(because: "writes the backup") {
  ///   try await work()
  /// }
  /// ```
  ///
  /// It takes a block lock, for which it waits a second at most. `systemd-inhibit --list` shows it, with the reason; operations
  /// that run at the same time share one lock, with the reason of the first. Sleep and shutdown need a right each. A denied
  /// right, or a logind that is away, is logged once, and the operation runs all the same. In a mock there is no lock.
  ///
  /// A closed lid (`LidSwitchIgnoreInhibited=`), `systemctl --force` and, before systemd 257, root's commands are
  /// stronger than a lock. A lock holds only the machine: a pause or a stop of the daemon still cancels the round.
  /// Source: org.freedesktop.login1(5), `Inhibit`; logind.conf(5).
  nonisolated(nonsending) public func keepingAwake<T>(
    because reason: String, _ operation: nonisolated(nonsending) () async throws -> T
  ) async rethrows -> T {
    guard let core = clock?.keeper as? LifecycleCore, core.virtualTime == nil else {
      return try await operation()
    }
    await core.keepAwake(because: reason)
    defer { core.letSleep() }
    return try await operation()
  }
}
