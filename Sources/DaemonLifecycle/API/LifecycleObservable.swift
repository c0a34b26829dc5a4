// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd
import Synchronization

/// What components depend on: a real subject in the daemon, a mock in its tests.
///
/// ```swift
/// actor Poller: BackgroundObserver {
///   init(lifecycle: any LifecycleObservable) { lifecycle.addObserver(self) }
///   func didEnterBackground(_ notification: DidEnterBackground) { … }
/// }
/// ```
///
/// Everything below comes from one extension over one requirement, so subject and mock can't drift.
/// Every method may be called from any thread and from any hook.
public protocol LifecycleObservable: AnyObject, Sendable {
  /// The implementation of everything below. For the package and whoever wraps a subject, not for use.
  var _core: LifecycleCore { get }
}

extension LifecycleObservable {
  package var core: LifecycleCore { _core }

  /// The daemon's state at this moment.
  public var state: LifecycleState { core.lifecycleState }

  /// The clock of deadlines: the system's monotonic one, or that of a mock. Use it for sleeps in hooks too.
  public var clock: LifecycleClock { LifecycleClock(keeper: core) }

  /// What the daemon says of itself, beside its state, in `systemctl status`. Default `nil`: nothing.
  ///
  /// ```swift
  /// lifecycle.status = "42 clients"  // foreground since 2026-11-21 12:01:07 (launch); 42 clients
  /// ```
  ///
  /// On one line, with control characters escaped, of at most 200 bytes. Sent when it has changed, at most once a second:
  /// the last one counts. It stays over a pause.
  public var status: String? {
    get { core.state.withLock { $0.machine.status.text } }
    set { core.handle(.status(newValue)) }
  }

  /// How the daemon has ended; `nil` until then.
  public var exit: LifecycleExit? { core.exit }

  // MARK: Observers

  /// Adds an observer with all the hooks that it has adopted, and keeps it: until it is removed, or the daemon has ended.
  ///
  /// ```swift
  /// lifecycle.addObserver(Saver())
  /// lifecycle.addObserver(orders, name: "orders", deadline: .seconds(30))
  /// ```
  ///
  /// A late observer receives what the others have: the launch, then the foreground, if that is where the daemon is.
  /// Adding an observer twice does nothing. One that has no hook fails its launch, since it would receive nothing.
  ///
  /// - Parameters:
  ///   - observer: A class or an actor that adopts the protocols of its hooks.
  ///   - name: What reports and logs call it. Default: its type, and a number from the second of a type on (`Saver 2`).
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - deadline: How long each of its hooks may take. Default: its phase's, else
  ///     ``LifecycleConfiguration/hookDeadline``. A stop cuts it to what there is.
  public func addObserver(
    _ observer: some LifecycleObserver, name: String? = nil, phase: LifecyclePhase = .standard,
    deadline: Duration? = nil
  ) {
    core.add(
      observer, .init(name: name, phase: phase, deadline: deadline))
  }

  /// As ``addObserver(_:name:phase:deadline:)``, for what comes and goes while the daemon lives: held weakly, so somebody
  /// else must own it.
  ///
  /// One that has gone away without being removed is `skipped` (gone) in the next report.
  ///
  /// - Parameters:
  ///   - observer: A class or an actor that adopts the protocols of its hooks.
  ///   - name: What reports and logs call it. Default: its type.
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - deadline: How long each of its hooks may take. Default: as the phase or the configuration says.
  public func addObserver(
    weakly observer: some LifecycleObserver, name: String? = nil,
    phase: LifecyclePhase = .standard, deadline: Duration? = nil
  ) {
    core.add(
      observer, isOwned: false,
      .init(name: name, phase: phase, deadline: deadline))
  }

  /// Removes everything that an observer, or an owner, has registered. Sends nothing: no hook of it begins
  /// after this returns, and one that runs goes on to its end.
  ///
  /// - Parameter observerOrOwner: An observer that was added, or an owner that was given to
  ///   ``observe(_:owner:name:phase:deadline:_:)``.
  public func removeObserver(_ observerOrOwner: AnyObject) { core.remove(owner: observerOrOwner) }

  /// Calls `body` for every notification of one type, as long as the token lives.
  ///
  /// ```swift
  /// token = lifecycle.observe(ShouldReload.self) { _ in try settings.reload() }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The type of the notification.
  ///   - name: What reports and logs call the closure. Default: its place in the source.
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - deadline: How long it may take. Default: as the phase or the configuration says.
  ///   - file: Names a closure without a name, together with `line`.
  ///   - line: Names a closure without a name.
  ///   - body: A hook like any other: it has a deadline, and what it throws is in the report. Called in its own
  ///     isolation, or on the subject's threads.
  /// - Returns: Ends the observation when it goes away, or is cancelled.
  public func observe<N: LifecycleNotification>(
    _ type: N.Type, name: String? = nil, phase: LifecyclePhase = .standard,
    deadline: Duration? = nil, file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable (N) async throws -> Void
  ) -> ObservationToken {
    token(
      .closure(for: type, body),
      .init(name: name, phase: phase, deadline: deadline),
      .closure(file: file, line: line))
  }

  /// Calls `body` for every notification of one type, as long as `owner` lives; it is held weakly and
  /// handed to the body, which need not capture it.
  ///
  /// - Parameters:
  ///   - type: The type of the notification.
  ///   - owner: Ends the observation when it goes away, or is removed.
  ///   - name: What reports and logs call the closure. Default: the owner's type.
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - deadline: How long it may take. Default: as the phase or the configuration says.
  ///   - body: As in ``observe(_:name:phase:deadline:file:line:_:)``, with the owner first.
  public func observe<N: LifecycleNotification, Owner: AnyObject & Sendable>(
    _ type: N.Type, owner: Owner, name: String? = nil, phase: LifecyclePhase = .standard,
    deadline: Duration? = nil, _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) {
    let hook = Hook.closure(for: type, owner: Owner.self, body)
    _ = core.add(
      closures: [hook], owner: owner,
      .init(name: name, phase: phase, deadline: deadline),
      name: .type(Owner.self))
  }

  /// Calls `body` for every notification of any type, as long as the token lives.
  ///
  /// Parameters and result are those of ``observe(_:name:phase:deadline:file:line:_:)``.
  public func observeAll(
    name: String? = nil, phase: LifecyclePhase = .standard, deadline: Duration? = nil,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> ObservationToken {
    token(
      .wildcard(body), .init(name: name, phase: phase, deadline: deadline),
      .closure(file: file, line: line))
  }

  private func token(
    _ hook: Hook, _ options: ObserverEntry.Options, _ name: ObserverName
  ) -> ObservationToken {
    let core = core
    let id = core.add(closures: [hook], owner: nil, options, name: name)
    return ObservationToken { [weak core] in core?.remove(id) }
  }

  // MARK: Views

  /// The notifications of one type as they happen: a view that delivery never waits for, and no place to
  /// save. It finishes after WillTerminate.
  ///
  /// - Parameters:
  ///   - type: The type of the notification.
  ///   - count: How many wait for a slow consumer; of more, the oldest are dropped. Default 16.
  public func notifications<N: LifecycleNotification>(
    of type: N.Type, bufferingNewest count: Int = 16
  ) -> AsyncStream<N> {
    core.stream(
      of: .notifications(ObjectIdentifier(type)), bufferingNewest: count, as: N.self)
  }

  /// The reports of all deliveries as they end: a view, as ``notifications(of:bufferingNewest:)``.
  ///
  /// - Parameter count: How many wait for a slow consumer; of more, the oldest are dropped. Default 16.
  public func reports(bufferingNewest count: Int = 16) -> AsyncStream<LifecycleReport> {
    core.stream(of: .reports, bufferingNewest: count, as: LifecycleReport.self)
  }

  // MARK: Asking for things

  /// Delivers a notification of your own and returns when every hook for it has ended.
  ///
  /// It waits for its turn; posted in a hook, it is delivered at once, and its hooks are cancelled no later
  /// than that one. After the termination has begun, or when that overtakes it, its hooks are `skipped(.overtaken)`.
  ///
  /// - Parameter notification: A value of a type of your own.
  /// - Returns: What each hook did.
  @discardableResult
  nonisolated(nonsending) public func post(_ notification: some CustomNotification) async
    -> LifecycleReport
  {
    await core.post(notification)
  }

  /// Adds a reason for being in the background; the daemon stays there until it is removed.
  ///
  /// Given before the launch, it launches the daemon in the background:
  ///
  /// ```swift
  /// configuration.systemd.watchedUnits = ["standby-a.target"]
  /// let lifecycle = LifecycleSubject(configuration: configuration)
  /// // Until systemd says that the unit is active, and for good if nobody can say so.
  /// lifecycle.pause(for: BackgroundReason("standby-a.target"))
  /// ```
  ///
  /// - Parameter reason: Its name. Default ``BackgroundReason/operator``.
  public func pause(for reason: BackgroundReason = .operator) {
    core.receive(LifecycleEvent(.enterBackground(reason)))
  }

  /// Removes a reason for being in the background; when none is left, the daemon enters the foreground.
  ///
  /// - Parameter reason: Its name. Default ``BackgroundReason/operator``.
  public func resume(for reason: BackgroundReason = .operator) {
    core.receive(LifecycleEvent(.enterForeground(reason)))
  }

  /// The name of 0.1 for ``pause(for:)``.
  @available(*, deprecated, renamed: "pause(for:)")
  public func enterBackground(for reason: BackgroundReason = .operator) { pause(for: reason) }

  /// The name of 0.1 for ``resume(for:)``.
  @available(*, deprecated, renamed: "resume(for:)")
  public func enterForeground(for reason: BackgroundReason = .operator) { resume(for: reason) }

  /// Requests ShouldSaveState, and returns at once.
  public func saveState() { core.receive(LifecycleEvent(.saveState)) }

  /// Requests ShouldSaveState and ShouldReload, and returns at once.
  public func reload() { core.receive(LifecycleEvent(.reload)) }

  /// Requests the termination, and returns at once. Unlike a signal, a second call does not escalate.
  public func terminate() {
    core.recorder?.didTerminate()
    core.receive(LifecycleEvent(.terminate))
  }

  /// Holds deliveries back until the token ends, then delivers what was requested meanwhile, in order: for start-up
  /// code that must not be interrupted. A delivery that has begun goes on; launch and termination are not held.
  public func holdDeliveries() -> ObservationToken { core.hold() }

  /// The systemd job that terminates the service: `.restart` or `.stop`; `nil` when systemd did not request the end, as
  /// with kill(1), or could not be asked in time.
  ///
  /// ```swift
  /// func willTerminate(_ notification: WillTerminate) async {
  ///   let job = await lifecycle.unitJob()
  ///   if job?.isRestart ?? true { handOver() } else { await finishConnections() }
  /// }
  /// ```
  ///
  /// Only systemd's bus has it. It is asked when the termination begins, and the answer takes about a millisecond.
  /// Before a termination this is `nil`, at once.
  ///
  /// - Parameter limit: How long to wait for the answer; default 1 s. A hook's deadline counts too.
  nonisolated(nonsending) public func unitJob(
    within limit: Duration = .seconds(1)
  ) async -> UnitJob? {
    await core.unitJob(within: limit)
  }

  /// The descriptors and bytes that the service manager keeps between two runs.
  ///
  /// ```swift
  /// let listener = try lifecycle.preservation.preserved(named: "http", as: .listeningStream)
  /// try lifecycle.preservation.closeUnknown()
  /// ```
  ///
  /// The first use takes over what systemd has passed to this process, so use it early. It can be taken over once: not
  /// by `PassedDescriptors.take()` as well, nor by a second subject. Safe to use from any thread.
  ///
  /// Without systemd nothing is there, and nothing is kept. A mock has what an earlier mock with the same
  /// `FakeServiceManager` has preserved.
  ///
  /// - Throws: What is wrong with the variables or descriptors that systemd has passed.
  public var preservation: Preservation {
    get throws(SystemdError) { try core.preservation.get() }
  }

  // MARK: Work

  /// Runs `body` while the daemon is in the foreground: a pause cancels it and waits, within the hook
  /// deadline, for it to end; a resume runs it again.
  ///
  /// ```swift
  /// try await lifecycle.foreground {
  ///   for try await _ in lifecycle.ticks(every: .seconds(1)) { try await poller.poll() }
  /// }
  /// ```
  ///
  /// Rounds never overlap: a resume waits for a body that is overdue. A body that returns is not run again
  /// before the next resume. Returns when the daemon terminates.
  ///
  /// - Parameters:
  ///   - name: What reports and logs call the body. Default: its place in the source.
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - file: Names a body without a name, together with `line`.
  ///   - line: Names a body without a name.
  ///   - body: The work, in a task of its own for each round.
  /// - Throws: What the body throws, except the `CancellationError` of a pause; `CancellationError` when the calling
  ///   task is cancelled otherwise.
  nonisolated(nonsending) public func foreground(
    name: String? = nil, phase: LifecyclePhase = .standard, file: StaticString = #fileID,
    line: UInt = #line, _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) async throws {
    let place = ObserverName.foreground(file: file, line: line)
    try await run(
      ForegroundRounds { _ in try await body() },
      .init(name: name, orElse: place, phase: phase))
  }

  /// Runs `body` while the daemon is in the foreground, and lets it finish what it has begun: for servers.
  ///
  /// ```swift
  /// try await lifecycle.foreground(draining: .seconds(20)) { round in
  ///   try await withThrowingDiscardingTaskGroup { connections in
  ///     for try await client in clients.untilEnding(of: round) {
  ///       connections.addTask { await serve(client, round) }
  ///     }
  ///   }
  /// }
  /// ```
  ///
  /// A pause, a suspend or a stop ends the round, in the turn of its DidEnterBackground, and waits for the body: end who
  /// is idle, answer who is busy (``ForegroundRound/untilEnding(_:)``, ``RoundElements``). What still runs when the limit
  /// is over is cancelled, and has ``LifecycleConfiguration/cancellationGrace``; the report names it, and a stop's status
  /// is 124. A second signal that counts cancels it at once.
  ///
  /// A resume meanwhile waits: the round ends first, then a new one begins. Cancelling the calling task cancels the body
  /// without letting it finish.
  ///
  /// - Parameters:
  ///   - limit: How long the body may take to finish, in place of ``LifecycleConfiguration/hookDeadline``. A stop cuts it
  ///     to what its time leaves before the save, and a sleep to what logind grants; one that can't fit is logged when it
  ///     is known.
  ///   - name: What reports and logs call the body. Default: its place in the source.
  ///   - phase: Its place in the order; the servers of one concurrent phase finish together. Default
  ///     ``LifecyclePhase/standard``.
  ///   - file: Names a body without a name, together with `line`.
  ///   - line: Names a body without a name.
  ///   - body: The work, in a task of its own for each round.
  /// - Throws: What the body throws, except the `CancellationError` of an end; `CancellationError` when the calling task
  ///   is cancelled otherwise.
  nonisolated(nonsending) public func foreground(
    draining limit: Duration, name: String? = nil, phase: LifecyclePhase = .standard,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) (ForegroundRound) async throws -> Void
  ) async throws {
    let place = ObserverName.foreground(file: file, line: line)
    try await run(
      ForegroundRounds(drains: true, body),
      .init(name: name, orElse: place, phase: phase, deadline: limit))
  }

  /// As ``foreground(name:phase:file:line:_:)``, for a part that may fail: a body that throws is run again after a while, and
  /// the other parts of the daemon are left alone.
  ///
  /// ```swift
  /// try await lifecycle.foreground(restarting: .backoff(intensity: 5, within: .seconds(60))) {
  ///   try await consumer.run()
  /// }
  /// ```
  ///
  /// Each failure is logged. One more than the policy survives within its period is thrown, which in the body of `run`
  /// ends the daemon with status 1, so that systemd's `Restart=` has its turn. Once the body has run for that period
  /// without failing, the past is forgotten, and systemd 258 and later are told to forget their restarts as well
  /// (`RESTART_RESET=1`).
  ///
  /// - Parameters:
  ///   - policy: The delays, and when to give up. On a mock's clock delays are not shortened at random.
  ///   - name: What reports and logs call the body. Default: its place in the source.
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - file: Names a body without a name, together with `line`.
  ///   - line: Names a body without a name.
  ///   - body: The work, in a task of its own for each round.
  /// - Throws: The error that was one too many; `CancellationError` when the calling task is cancelled.
  nonisolated(nonsending) public func foreground(
    restarting policy: RestartPolicy, name: String? = nil, phase: LifecyclePhase = .standard,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) async throws {
    let place = name.map { ObserverName.given($0) } ?? .foreground(file: file, line: line)
    let supervisor = RestartingBody(core, policy, place, body)
    try await run(
      ForegroundRounds { _ in try await supervisor.run() }, .init(orElse: place, phase: phase))
  }

  /// Returns when no more rounds begin.
  nonisolated(nonsending) private func run(
    _ rounds: ForegroundRounds, _ options: ObserverEntry.Options
  ) async throws {
    let core = core
    guard !core.isTerminating else { return }
    core.addRounds(rounds, options)
    // Cut off by the end it stays, and hears what all hear, so that the report does not depend on who was
    // quicker; with the end it goes.
    defer { if !core.isTerminating { core.removeRounds(rounds) } }
    do {
      try await withTaskCancellationHandler {
        try await rounds.untilOver()
      } onCancel: {
        rounds.cancel()
      }
    } catch is CancellationError where core.isTerminating {
      return
    }
  }

  /// A tick at once and then every `interval`, on the subject's clock, until the task is cancelled.
  ///
  /// A slow consumer skips ticks rather than getting them late; the count goes on.
  ///
  /// - Parameter interval: The time between two ticks; at least a nanosecond.
  public func ticks(every interval: Duration) -> LifecycleTicks {
    LifecycleTicks(clock: clock, interval: interval)
  }

  /// An executor on the subject's own threads, for an actor whose hooks must run even while Swift's cooperative pool is
  /// blocked.
  public func makeSerialExecutor() -> LifecycleSerialExecutor {
    LifecycleSerialExecutor(executor: core.executor)
  }
}
