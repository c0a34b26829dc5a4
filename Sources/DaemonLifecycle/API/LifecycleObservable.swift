import Synchronization

/// What components depend on: a real subject in the daemon, a mock in its tests.
///
///     actor Poller: BackgroundObserver {
///       init(lifecycle: any LifecycleObservable) { lifecycle.addObserver(self) }
///       func didEnterBackground(_ notification: DidEnterBackground) { … }
///     }
///
/// Everything below comes from one extension over one requirement, so subject and mock can't drift.
/// Every method may be called from any thread and from any hook.
public protocol LifecycleObservable: AnyObject, Sendable {
  /// What the methods below work on; of no use elsewhere.
  var core: LifecycleCore { get }
}

extension LifecycleObservable {
  /// Where the daemon is in its life.
  public var state: LifecycleState { core.lifecycleState }

  /// The clock that deadlines are on, and sleeps should be.
  public var clock: LifecycleClock { LifecycleClock(keeper: core) }

  // MARK: Observers

  /// Adds an observer with all the hooks that it has adopted, and holds it weakly.
  ///
  /// A late observer is told what the others have heard: of the launch, then of the foreground, if that
  /// is where the daemon is. Adding an observer twice does nothing.
  public func addObserver(_ observer: some LifecycleObserver, phase: LifecyclePhase = .standard) {
    core.add(observer, phase: phase)
  }

  /// Drops everything that an observer, or an owner, has registered. Sends nothing: no hook of it begins
  /// after this returns, and one that runs goes on to its end.
  public func removeObserver(_ observerOrOwner: AnyObject) { core.remove(owner: observerOrOwner) }

  /// Calls `body` for every notification of one type, as long as the token lives.
  ///
  ///     token = lifecycle.observe(ShouldReload.self) { _ in try settings.reload() }
  public func observe<N: LifecycleNotification>(
    _ type: N.Type, phase: LifecyclePhase = .standard, file: StaticString = #fileID,
    line: UInt = #line, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> ObservationToken {
    token(.closure(for: type, body), phase, .closure(file: file, line: line))
  }

  /// Calls `body` for every notification of one type, as long as `owner` lives; it is held weakly and
  /// handed to the body, which need not capture it.
  public func observe<N: LifecycleNotification, Owner: AnyObject & Sendable>(
    _ type: N.Type, owner: Owner, phase: LifecyclePhase = .standard,
    _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) {
    let hook = Hook.closure(for: type, owner: Owner.self, body)
    core.add(closures: [hook], owner: owner, phase: phase)
  }

  /// Calls `body` for every notification of any type, as long as the token lives.
  public func observeAll(
    phase: LifecyclePhase = .standard, file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> ObservationToken {
    token(.wildcard(body), phase, .closure(file: file, line: line))
  }

  private func token(_ hook: Hook, _ phase: LifecyclePhase, _ name: ObserverName)
    -> ObservationToken
  {
    let core = core
    let id = core.add(closures: [hook], owner: nil, phase: phase, name: name)
    return ObservationToken { [weak core] in core?.remove(id) }
  }

  // MARK: Views

  /// The notifications of one type as they happen: a view that delivery never waits for, and no place to
  /// save. When full, the oldest goes; it finishes after WillTerminate.
  public func notifications<N: LifecycleNotification>(
    of type: N.Type, bufferingNewest count: Int = 16
  ) -> AsyncStream<N> {
    core.stream(
      of: .notifications(ObjectIdentifier(type)), bufferingNewest: count, as: N.self)
  }

  /// All notifications as they happen, as `notifications(of:)`.
  public func allNotifications(bufferingNewest count: Int = 64)
    -> AsyncStream<any LifecycleNotification>
  {
    core.stream(of: .all, bufferingNewest: count, as: (any LifecycleNotification).self)
  }

  /// What the hooks did, event by event, as `notifications(of:)`.
  public func reports(bufferingNewest count: Int = 16) -> AsyncStream<LifecycleReport> {
    core.stream(of: .reports, bufferingNewest: count, as: LifecycleReport.self)
  }

  // MARK: Asking for things

  /// Delivers a notification of your own and returns when every hook for it has ended.
  ///
  /// It waits for its turn; posted in a hook, it is delivered at once, and its hooks are cancelled no later
  /// than that one. After the
  /// termination has begun, or when that overtakes it, its hooks are `skipped(.overtaken)`.
  @discardableResult
  nonisolated(nonsending) public func post(_ notification: some LifecycleNotification) async
    -> LifecycleReport
  {
    await core.post(notification)
  }

  /// Gives a reason for being in the background; the daemon stays there until it is taken back.
  ///
  /// Given before the launch, it launches the daemon in the background:
  ///
  ///     configuration.systemd.watchedUnits = ["standby-a.target"]
  ///     let lifecycle = LifecycleSubject(configuration)
  ///     // Until systemd says that the unit is active, and for good if nobody can say so.
  ///     lifecycle.enterBackground(for: BackgroundReason("standby-a.target"))
  public func enterBackground(for reason: BackgroundReason = .operator) {
    core.receive(LifecycleEvent(.enterBackground(reason)))
  }

  /// Takes a reason for being in the background back.
  public func enterForeground(for reason: BackgroundReason = .operator) {
    core.receive(LifecycleEvent(.enterForeground(reason)))
  }

  /// Asks for ShouldSaveState.
  public func saveState() { core.receive(LifecycleEvent(.saveState)) }

  /// Asks for ShouldSaveState and ShouldReload.
  public func reload() { core.receive(LifecycleEvent(.reload)) }

  /// Asks for the end, and returns at once. Unlike a signal, a second call does not escalate.
  public func terminate() {
    core.recorder?.didTerminate()
    core.receive(LifecycleEvent(.terminate))
  }

  /// Holds deliveries back until the token ends, then delivers what has come, in order: for start-up code
  /// that must not be interrupted. What is being delivered goes on; launch and termination are not held.
  public func holdDeliveries() -> ObservationToken { core.hold() }

  // MARK: Work

  /// Runs `body` while the daemon is in the foreground: a pause cancels it and waits, within the hook
  /// deadline, for it to end; a resume runs it again.
  ///
  ///     try await lifecycle.foreground {
  ///       for try await _ in lifecycle.ticks(every: .seconds(1)) { try await poller.poll() }
  ///     }
  ///
  /// Rounds never overlap: a resume waits for a body that is overdue. A body that returns is not run again
  /// before the next resume. Returns when the daemon terminates; throws what the body throws, except the
  /// `CancellationError` of a pause, and `CancellationError` when the calling task is cancelled otherwise.
  nonisolated(nonsending) public func foreground(
    phase: LifecyclePhase = .standard, file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable @isolated(any) () async throws -> Void
  ) async throws {
    let core = core
    guard !core.isTerminating else { return }
    let rounds = ForegroundRounds(body)
    core.addRounds(rounds, phase: phase, name: .foreground(file: file, line: line))
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
  public func ticks(every interval: Duration) -> LifecycleTicks {
    LifecycleTicks(clock: clock, interval: interval)
  }

  /// An executor on the subject's own threads, for an actor that must hear its hooks even while Swift's
  /// cooperative pool is blocked.
  public func makeSerialExecutor() -> LifecycleSerialExecutor {
    LifecycleSerialExecutor(executor: core.executor)
  }
}
