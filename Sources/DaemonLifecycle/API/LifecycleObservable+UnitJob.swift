public import DaemonSystemd

extension LifecycleObservable {
  /// What systemd is doing with the service that terminates: `.restart` or `.stop`; `nil` when systemd did not ask
  /// for the end, as with kill(1), or could not be asked in time.
  ///
  ///     func willTerminate(_ notification: WillTerminate) async {
  ///       let job = await lifecycle.unitJob()
  ///       if job?.isRestart ?? true { handOver() } else { await finishConnections() }
  ///     }
  ///
  /// Nothing but systemd's bus says so. It is asked when the termination begins, and the answer takes about a
  /// millisecond. Before a termination this is `nil`, at once.
  ///
  /// - Parameter limit: How long the answer is waited for; default 1 s. A hook's deadline counts too.
  nonisolated(nonsending) public func unitJob(
    within limit: Duration = .seconds(1)
  ) async -> UnitJob? {
    await core.unitJob(within: limit)
  }
}
