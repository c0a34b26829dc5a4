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
  /// Each run is a *round*. Rounds never overlap: a resume waits for a body that is late to end. A round begins only when
  /// every hook before it has completed its `willEnterForeground`; otherwise the next resume or reload tries again.
  ///
  /// A body that returns by itself is run again after the next resume, and until then the log and the status say that it
  /// has ended. Make in the round what ends with it: a pause ends a stream that the body waits for, and a stream that was
  /// made once, outside of the body, has no more elements for the next round.
  ///
  /// An error that the body throws ends the daemon, with status 1 or that of an ``ExitStatusError``. After a pause or a
  /// stop has cancelled the body, an error is in that report and has no other effect.
  ///
  /// The lifecycle retains the body until the daemon has ended. Servers, and other work that has something to finish, use
  /// the form whose body takes the ``WorkRound``, which has the parameters. A tick of ``ticks(every:spread:)`` is progress.
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
  /// With a limit, a pause, the machine's sleep or a stop marks the round as ending, as its part of DidEnterBackground, and waits
  /// for the body. The body should then close idle connections and answer the requests that it is working on
  /// (``WorkRound/untilEnding(_:)``). A body that still runs after the limit is cancelled, and the report names
  /// it; the exit status of a stop is then 124. A second terminating signal cancels it at once.
  ///
  /// Otherwise it works as the one whose body does not take the round.
  ///
  /// - Parameters:
  ///   - name: The body's name in reports and logs. Default: its file and line.
  ///   - phase: Its place in the order; the servers of one concurrent phase finish together.
  ///   - limit: How long the body may take to finish, in place of ``LifecycleConfiguration/hookTimeout``. A stop
  ///     shortens it to the time that is left before the save, and a sleep to the time that logind grants. A limit that
  ///     can't be kept is logged as soon as that is known. Default `nil`: the body is cancelled as the round ends.
  ///   - policy: When the body is run again after an error. Default `nil`: the error ends the daemon.
  ///   - readyWithin: How long the body may take until it calls ``WorkRound/reportReady()``. `READY=1` and the next
  ///     phase wait for it, and the daemon is ready only while the body is: not while it waits to be run again, nor once it
  ///     has returned. A launch in which it is not ready in time, or ends, has failed; after a pause it is tried again, and
  ///     one that is only slow goes on, unless it has a policy. Default `nil`: it is ready as it begins.
  ///   - stallsAfter: After how long without progress (``WorkRound/reportProgress()``) the body is run again, if it
  ///     has a policy; without one the daemon is not healthy, and its watchdog is not pinged, until it goes on. A pause
  ///     stops the clock. At least 10 ms; other times below zero count as zero. Default `nil`: never.
  ///   - mayIdle: Whether the body may wait for any time for a tick, an element of `untilEnding(of:)` or a result of
  ///     ``WorkRound/untilEnding(_:)``: `stallsAfter` is then the limit of the work between two waits. Default
  ///     `false`, since a queue whose connection is dead looks like an empty one.
  ///   - mayReturn: Whether the body is expected to return by itself, which is then not said, and counts as ready. Default
  ///     `false`.
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
  /// everything else has paused, before state is saved: that is its only round. Its begin is an entry of
  /// ``DidFinishLaunching`` in the launch's report, its end one of ``WillTerminate`` in the stop's, if it still
  /// runs then.
  ///
  /// Otherwise it works as `addForeground`: an error ends the daemon, or has the body run again. Work after which the
  /// daemon is to end calls ``terminate(because:exitStatus:)`` as its last statement: a stop may cancel it at once.
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
  /// - Throws: The error that the body throws, and that no restart follows; not after a pause or a stop has cancelled
  ///   it, when the error is in that report and has no other effect. `CancellationError` when the calling task is
  ///   cancelled. ``LifecycleError/foregroundInSetUp`` in the set-up of `runAndExit`, for which the launch waits: write
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
  /// - Throws: The error that the body throws, except in a round that is ending, when it is in the report of the pause
  ///   or the stop. `CancellationError` when the calling task is cancelled.
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
