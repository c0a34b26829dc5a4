// SPDX-License-Identifier: Apache-2.0
extension WorkRound {
  /// Runs `operation`, and has logind keep the machine from sleeping, and from shutting down, until it ends: UIKit's
  /// background task.
  ///
  /// ```swift
  /// try await round.keepingAwake(because: "writes the backup") {
  ///   try await work()
  /// }
  /// ```
  ///
  /// It takes a block lock (`systemd-inhibit --list` shows it, with the reason), for which it waits a second at most. The lock
  /// for the shutdown needs more rights than that for the sleep; where neither is granted, or there is no logind, that is
  /// logged once, and the operation runs all the same. In a mock there is no lock.
  ///
  /// A lock delays the stop of nothing but the machine: the round may end meanwhile. Source: org.freedesktop.login1(5),
  /// `Inhibit`.
  nonisolated(nonsending) public func keepingAwake<T>(
    because reason: String, _ operation: nonisolated(nonsending) () async throws -> T
  ) async rethrows -> T {
    guard let core = clock?.keeper as? LifecycleCore, core.virtualTime == nil else {
      return try await operation()
    }
    let source = await core.take(AwakeLock(because: reason))
    defer { if let source { core.closeParts { $0 === source } } }
    return try await operation()
  }
}
