// SPDX-License-Identifier: Apache-2.0

// Work: in the foreground, and from the launch to the stop.
extension LifecycleObservable {
  /// Adds work that runs while the daemon is in the foreground.
  ///
  /// A pause cancels the body and waits for it to end, within the hook timeout. A resume runs it again.
  ///
  /// ```swift
  /// lifecycle.addForeground(name: "polling", restarting: .backoff()) {
  ///   for try await _ in lifecycle.ticks(every: .seconds(1)) {
  ///     try await poller.poll()
  ///   }
  /// }
  /// ```
  ///
  /// Each run is a *round*. Rounds never overlap: a resume waits for a body that is late to end. A round begins only when every
  /// observer before it has completed `willEnterForeground`. A failed one is called again after 1 s, then less often, at least
  /// every minute, and at each resume or reload.
  ///
  /// A body that returns by itself is run again after the next resume; until then the log and the status report its
  /// end. Make streams inside the body: a pause finishes the stream that the body waits for, and a stream made outside
  /// has nothing for the next round.
  ///
  /// An error of the body ends the daemon, with status 1 or that of an ``ExitStatusError``. Once a pause or a stop has
  /// cancelled the body, its error is in that report and has no other effect.
  ///
  /// The lifecycle retains the body until the daemon has ended. Servers, and other work with something to finish, use the form
  /// whose body takes the ``WorkRound``; it describes the parameters. A tick of ``ticks(every:spread:)`` counts as progress.
  public func addForeground(
    name: String? = nil, phase: LifecyclePhase = .standard, restarting policy: RestartPolicy? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) {
    addForeground(
      name: name, phase: phase, restarting: policy, stallsAfter: stallsAfter, mayIdle: mayIdle,
      mayReturn: mayReturn, file: file, line: line
    ) { _ in try await body() }
  }

  /// Adds work that runs while the daemon is in the foreground, and may finish what it has begun: for servers.
  ///
  /// ```swift
  /// lifecycle.addForeground(name: "server", draining: .seconds(20)) { round in
  ///   try await withThrowingDiscardingTaskGroup { connections in
  ///     for try await client in listener.clients().untilEnding(of: round) {
  ///       connections.addTask { await serve(client, round) }
  ///     }
  ///   }
  /// }
  /// ```
  ///
  /// With a limit, a pause, the machine's sleep or a stop marks the round as ending, at the body's place in
  /// DidEnterBackground, and waits for the body. The body should then close idle connections and answer the requests
  /// that it is working on (``WorkRound/untilEnding(_:)``). A body that still runs after the limit is cancelled, and
  /// the report names it; the exit status of a stop is then 124. A second terminating signal cancels it at once.
  ///
  /// Otherwise it works as the form whose body does not take the round.
  ///
  /// - Parameters:
  ///   - name: The body's name in reports and logs. Default: its file and line.
  ///   - phase: Its place in the order; the servers of one concurrent phase finish together.
  ///   - limit: How long the body may take to finish, in place of ``LifecycleConfiguration/hookTimeout``. A stop shortens
  ///     it to the time that is left before the save, and a sleep to the time that logind grants. If a stop can't grant the
  ///     limit, a warning is logged after the launch. Default `nil`: the body is cancelled as the round ends.
  ///   - policy: When the body is run again after an error. Default `nil`: the error ends the daemon.
  ///   - readyWithin: How long the body may take to call ``WorkRound/reportReady()``. `READY=1` and the next phase wait
  ///     for that call. The daemon is ready only while the body is: not while the body waits to be run again, nor once
  ///     it has returned. If it is not ready in time, or ends, the launch has failed. At a resume the body is tried
  ///     again, or goes on if it is only slow and has no policy. Default `nil`: ready as it begins.
  ///   - stallsAfter: The time without progress (``WorkRound/reportProgress()``) after which the body is run again, if it
  ///     has a policy. Without a policy the daemon is unhealthy, and its watchdog is not pinged, until there is progress. A
  ///     pause stops the clock. At least 10 ms; in other parameters a time below zero counts as zero. Default `nil`: never.
  ///   - mayIdle: Whether the body may wait any length of time for a tick, an element of `untilEnding(of:)` or a result
  ///     of ``WorkRound/untilEnding(_:)``: `stallsAfter` then limits the work between two waits. Default `false`, since
  ///     a queue with a dead connection looks like an empty one.
  ///   - mayReturn: Whether the body is expected to return. Its return is then not reported, and it counts as ready.
  ///     Default `false`.
  ///   - file: The file of the default name.
  ///   - line: The line of the default name.
  ///   - body: The work, in a new task for each round.
  public func addForeground(
    name: String? = nil, phase: LifecyclePhase = .standard, draining limit: Duration? = nil,
    restarting policy: RestartPolicy? = nil, readyWithin: Duration? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) (WorkRound) async throws -> Void
  ) {
    core.add(
      WorkRunner(core, .given(name, orElse: .foreground(file: file, line: line)), body),
      WorkOptions(
        readyWithin: readyWithin, stallsAfter: stallsAfter, mayIdle: mayIdle, restarts: policy,
        mayReturn: mayReturn),
      phase: phase, draining: limit)
  }

  /// Adds work that runs from the launch to the stop, whatever pauses the daemon: heartbeats, or a follower.
  ///
  /// ```swift
  /// lifecycle.addTask(name: "heartbeats", restarting: .backoff()) {
  ///   for try await _ in lifecycle.ticks(every: .seconds(3)) {
  ///     try await broker.beat()
  ///   }
  /// }
  /// ```
  ///
  /// It begins when all observers have finished launching, before anything enters the foreground. A stop ends it when
  /// everything else has paused, before state is saved: that is its only round. The launch's report has its beginning,
  /// as an entry of ``DidFinishLaunching``; the stop's report has its end, as one of ``WillTerminate``, if it still
  /// runs then.
  ///
  /// Otherwise it works as `addForeground`: an error ends the daemon, or the body is run again. Work that should end
  /// the daemon calls ``terminate(because:exitStatus:)`` as its last statement: a stop may cancel it at once.
  public func addTask(
    name: String? = nil, phase: LifecyclePhase = .standard, restarting policy: RestartPolicy? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) {
    addTask(
      name: name, phase: phase, restarting: policy, stallsAfter: stallsAfter, mayIdle: mayIdle,
      mayReturn: mayReturn, file: file, line: line
    ) { _ in try await body() }
  }

  /// Adds work that runs from the launch to the stop, and may finish what it has begun, or says when it is ready.
  ///
  /// It is `addTask` with a body that takes the ``WorkRound``; its parameters are those of `addForeground`.
  public func addTask(
    name: String? = nil, phase: LifecyclePhase = .standard, draining limit: Duration? = nil,
    restarting policy: RestartPolicy? = nil, readyWithin: Duration? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) (WorkRound) async throws -> Void
  ) {
    core.add(
      WorkRunner(core, .given(name, orElse: .task(file: file, line: line)), body),
      WorkOptions(
        form: .task, readyWithin: readyWithin, stallsAfter: stallsAfter, mayIdle: mayIdle,
        restarts: policy, mayReturn: mayReturn),
      phase: phase, draining: limit)
  }

  /// Runs `body` while the daemon is in the foreground, and returns when the daemon terminates: `addForeground` for work
  /// inside a function.
  ///
  /// ```swift
  /// try await lifecycle.foreground { try await consumer.run() }
  /// ```
  ///
  /// - Throws: The body's error, unless a restart follows. Once a pause or a stop has cancelled the body, its error is
  ///   in that report and has no other effect. `CancellationError` when the calling task is cancelled.
  ///   ``LifecycleError/foregroundInSetUp`` in the set-up of `runAndExit`, since the launch waits for that: write
  ///   `addForeground` there.
  nonisolated(nonsending) public func foreground(
    name: String? = nil, phase: LifecyclePhase = .standard, restarting policy: RestartPolicy? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) async throws {
    try await foreground(
      name: name, phase: phase, restarting: policy, stallsAfter: stallsAfter, mayIdle: mayIdle,
      mayReturn: mayReturn, file: file, line: line
    ) { _ in try await body() }
  }

  /// Runs `body` while the daemon is in the foreground, and returns when the daemon terminates: `addForeground` of a
  /// server, for work inside a function.
  ///
  /// Cancelling the calling task cancels the body without letting it finish.
  ///
  /// - Throws: The body's error; that of a round that is ending is in the report of the pause or the stop instead.
  ///   `CancellationError` when the calling task is cancelled.
  nonisolated(nonsending) public func foreground(
    name: String? = nil, phase: LifecyclePhase = .standard, draining limit: Duration? = nil,
    restarting policy: RestartPolicy? = nil, readyWithin: Duration? = nil,
    stallsAfter: Duration? = nil, mayIdle: Bool = false, mayReturn: Bool = false,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) (WorkRound) async throws -> Void
  ) async throws {
    let core = core
    guard !core.isTerminating else { return }
    if core.isBeforeLaunch(of: SetUp.current), SetUp.current?.isOwnTask == true {
      throw LifecycleError.foregroundInSetUp
    }
    let name = ObserverName.given(name, orElse: .foreground(file: file, line: line))
    let caller = Sleeper()
    let runner = WorkRunner(core, name, caller: caller, body)
    let work = WorkOptions(
      readyWithin: readyWithin, stallsAfter: stallsAfter, mayIdle: mayIdle, restarts: policy,
      mayReturn: mayReturn, hasCaller: true)
    guard let id = core.add(runner, work, phase: phase, draining: limit) else { return }
    // Cut off by the termination it stays and receives what all receive, so that the report does not depend on timing;
    // it is removed when the daemon has ended.
    defer { if !core.isTerminating { core.remove(id) } }
    try await caller.wait { core.handle(.work(id, .callerCancelled)) }
    if !core.isTerminating { try Task.checkCancellation() }
  }
}
