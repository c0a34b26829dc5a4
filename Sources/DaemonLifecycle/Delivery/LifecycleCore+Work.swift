extension LifecycleCore {
  /// What a critical section leaves to be done outside.
  struct Work {
    /// A driver that is through with its call and takes the first new one.
    var reusable: HookDriver?
    /// The call for that driver.
    private(set) var next: HookCall?
    /// Calls for new drivers.
    private(set) var calls: [(HookDriver, HookCall)] = []
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

    mutating func start(_ call: HookCall) -> HookDriver {
      if let driver = reusable {
        reusable = nil
        next = call
        return driver
      }
      let driver = HookDriver()
      calls.append((driver, call))
      return driver
    }
  }
}
