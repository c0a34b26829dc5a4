extension LifecycleCore {
  /// What a critical section leaves to be done outside.
  struct Work: ~Copyable {
    /// A driver that is through with its call and takes the first new one.
    var reusable: HookDriver?
    /// The run for that driver.
    private(set) var next: HookRun?
    /// Runs for new drivers.
    private(set) var runs: [(HookDriver, HookRun)] = []
    /// Drivers and the body, to be cancelled.
    var cancelled: [HookDriver] = []
    var cancelsBody: Task<Void, Never>?
    var sleepers: [Sleeper] = []
    /// Told in order: what sinks, streams and recorders see, and continuations that wait for it.
    var tellings: [@Sendable () -> Void] = []
    /// A health check that has begun: ask Swift's executors.
    var healthRound: UInt64?
    /// What may hold the last reference to an object of the user's, whose deinit may call us.
    var garbage: [any Sendable] = []
    /// What probes are to be shown, and how new that is: before any hook is called.
    var readiness: (isReady: Bool, number: UInt64)?
    /// Rounds whose daemon has ended.
    var endedRounds: [ForegroundRounds] = []

    init(reusable: HookDriver?) { self.reusable = reusable }

    mutating func start(_ run: HookRun) {
      if let driver = reusable {
        reusable = nil
        next = run
        run.driver = driver
      } else {
        let driver = HookDriver()
        runs.append((driver, run))
        run.driver = driver
      }
    }
  }
}
