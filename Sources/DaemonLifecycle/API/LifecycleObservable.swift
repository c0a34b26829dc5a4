// SPDX-License-Identifier: Apache-2.0
public import DaemonSystemd
import Synchronization

/// The interface that components depend on: a ``LifecycleSubject``, or in tests a `MockLifecycleSubject`.
///
/// ```swift
/// func addPoller(to lifecycle: any LifecycleObservable) {
///   let poller = Poller()
///   lifecycle.addObserver(poller)
///   lifecycle.addForeground { try await poller.work(lifecycle) }
/// }
/// ```
///
/// The subject and the mock share the implementation of all members. Any thread and hook may call them.
///
/// Do not conform to it: a type that wraps a subject or a mock keeps that as a property.
public protocol LifecycleObservable: AnyObject, Sendable {
  /// The implementation of all other members, for the package's own use.
  @_documentation(visibility: internal)
  var _core: LifecycleCore { get }
}

extension LifecycleObservable {
  package var core: LifecycleCore { _core }

  /// The daemon's current state.
  public var state: LifecycleState { core.lifecycleState }

  /// The reasons for being in the background, the machine's sleep among them. A hook of a pause finds the pause's
  /// reasons here. When none is left, the daemon returns to the foreground.
  ///
  /// ```swift
  /// let isOperators = lifecycle.backgroundReasons.contains(.operator)
  /// ```
  public var backgroundReasons: Set<BackgroundReason> {
    Set(core.state.withLock { $0.machine.registry.backgroundReasons })
  }

  /// Whether the daemon is in the foreground with all of its observers and work, and not about to leave it: for a
  /// health check over HTTP. The readiness file shows the same.
  ///
  /// ```swift
  /// router.get("healthz") { _, _ in
  ///   lifecycle.isReady ? HTTPResponse.Status.ok : .serviceUnavailable
  /// }
  /// ```
  public var isReady: Bool { core.isReady }

  /// Whether the daemon is healthy, for a liveness check over HTTP: Swift's executors and the observers' `checkHealth`
  /// answer, and no work has stalled.
  ///
  /// ```swift
  /// router.get("/livez") { _, _ in
  ///   lifecycle.isHealthy ? HTTPResponse.Status.ok : .serviceUnavailable
  /// }
  /// ```
  ///
  /// It returns the result of the last check at once. A check fails when a `checkHealth` throws or takes longer than
  /// its limit, or when Swift's executors have not answered for 30 s, or the watchdog's period. Reading it begins the
  /// next check, unless the last one began less than 5 s ago. It is true until the launch has ended, and in a stop,
  /// which has its own limit.
  public var isHealthy: Bool { core.isHealthy }

  /// The clock of all deadlines: `CLOCK_MONOTONIC`, or a mock's virtual clock. Use it for sleeps in hooks too.
  public var clock: LifecycleClock { core.clock }

  /// A custom text, shown after the daemon's state in `systemctl status`. Default `nil`: none.
  ///
  /// ```swift
  /// lifecycle.statusText = "42 clients"  // foreground since … (launch); 42 clients
  /// ```
  ///
  /// It is shown on one line, with control characters escaped, cut to 200 bytes. Of several changes within a second
  /// only the last is sent. The status of a pause, a save or a reload sends it sooner. A pause does not clear it.
  public var statusText: String? {
    get { core.state.withLock { $0.machine.status.text } }
    set { core.handle(.status(newValue)) }
  }

  /// How the daemon ended; `nil` while it runs.
  public var exitResult: LifecycleExit? { core.exit }

  // MARK: Observers

  /// Adds an observer, and retains it until it is removed or the daemon has ended.
  ///
  /// ```swift
  /// lifecycle.addObserver(Saver())
  /// lifecycle.addObserver(orders, name: "orders", timeout: .seconds(30))
  /// ```
  ///
  /// All hooks whose protocols the observer's type adopts are called. An observer that is added after the launch
  /// receives DidFinishLaunching and, in the foreground, WillEnterForeground. Adding an observer twice does nothing. An
  /// observer without a hook is reported as a failed launch.
  ///
  /// - Parameters:
  ///   - observer: A class or an actor that adopts the protocols of its hooks.
  ///   - name: Its name in reports and logs. Default: its type, numbered from the second of the same type on
  ///     (`Saver 2`).
  ///   - phase: Its place in the order. Default ``LifecyclePhase/standard``.
  ///   - timeout: How long each of its hooks may take. Default: the phase's timeout, else
  ///     ``LifecycleConfiguration/hookTimeout``. During a stop it is at most the time that is left.
  public func addObserver(
    _ observer: some LifecycleObserver, name: String? = nil, phase: LifecyclePhase = .standard,
    timeout: Duration? = nil
  ) {
    core.add(observer, .init(name: name, phase: phase, timeout: timeout))
  }

  /// Adds an observer without retaining it: for objects with a shorter life than the daemon's, such as connections.
  ///
  /// Otherwise it works as ``addObserver(_:name:phase:timeout:)``, with no number in its default name. It is removed
  /// when deallocated.
  public func addObserver(
    weakly observer: some LifecycleObserver, name: String? = nil,
    phase: LifecyclePhase = .standard, timeout: Duration? = nil
  ) {
    core.add(observer, isOwned: false, .init(name: name, phase: phase, timeout: timeout))
  }

  /// Removes everything that an observer, or an owner, has registered.
  ///
  /// No hook of it begins after this returns, and a hook that has begun is not interrupted. An actor's hook begins on
  /// the actor, so none follows a removal there. Any other hook has begun once it is called, even if another thread is
  /// just entering it, or it still waits for a global actor.
  public func removeObserver(_ observerOrOwner: AnyObject) { core.remove(owner: observerOrOwner) }

  /// Calls `body` for each notification of one type until the returned token is released or cancelled.
  ///
  /// ```swift
  /// token = lifecycle.observe(ShouldReload.self) { _ in try settings.reload() }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The type of the notification.
  ///   - name: The closure's name in reports and logs. Default: its file and line.
  ///   - phase: Its place in the order.
  ///   - timeout: How long it may take. Default: the phase's timeout, else the configuration's.
  ///   - file: The file of the default name.
  ///   - line: The line of the default name.
  ///   - body: The hook. Its error is in the report. It is called in its own isolation, or on a thread of the subject
  ///     if it has none.
  /// - Returns: A token that ends the observation when it is cancelled or released.
  public func observe<N: LifecycleNotification>(
    _ type: N.Type, name: String? = nil, phase: LifecyclePhase = .standard,
    timeout: Duration? = nil, file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable (N) async throws -> Void
  ) -> LifecycleToken {
    token(
      .closure(for: type, body), .init(name: name, phase: phase, timeout: timeout),
      .closure(file: file, line: line))
  }

  /// Calls `body` for each notification of one type as long as `owner` exists.
  ///
  /// Otherwise it works as ``observe(_:name:phase:timeout:file:line:_:)``. The owner is held weakly and passed to the
  /// body; its type is the default name. The observation ends when the owner is deallocated or removed.
  public func observe<N: LifecycleNotification, Owner: AnyObject & Sendable>(
    _ type: N.Type, owner: Owner, name: String? = nil, phase: LifecyclePhase = .standard,
    timeout: Duration? = nil, _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) {
    let hook = Hook.closure(for: type, owner: Owner.self, body)
    _ = core.add(
      closures: [hook], owner: owner, .init(name: name, phase: phase, timeout: timeout),
      name: .type(Owner.self))
  }

  /// Calls `body` for each notification of any type but ``CheckHealth`` until the returned token is released or cancelled.
  ///
  /// Otherwise it works as ``observe(_:name:phase:timeout:file:line:_:)``.
  public func observeAll(
    name: String? = nil, phase: LifecyclePhase = .standard, timeout: Duration? = nil,
    file: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> LifecycleToken {
    token(
      .wildcard(body), .init(name: name, phase: phase, timeout: timeout),
      .closure(file: file, line: line))
  }

  private func token(
    _ hook: Hook, _ options: Member.Options, _ name: ObserverName
  ) -> LifecycleToken {
    let core = core
    let id = core.add(closures: [hook], owner: nil, options, name: name)
    return LifecycleToken { [weak core] in
      core?.warnOfToken(of: id)
    } _: { [weak core] in
      core?.remove(id)
    }
  }

  // MARK: Streams

  /// A stream of the notifications of one type. It finishes after WillTerminate.
  ///
  /// Delivery does not wait for the stream's consumer. Use a hook, not a stream, for work that must be done before the
  /// delivery goes on, such as saving.
  ///
  /// - Parameters:
  ///   - type: The type of the notification.
  ///   - count: The size of the buffer for a slow consumer; when it is full, the oldest notifications are dropped. Default 16.
  public func notifications<N: LifecycleNotification>(
    of type: N.Type, bufferingNewest count: Int = 16
  ) -> AsyncStream<N> {
    core.stream(of: type, bufferingNewest: count)
  }

  /// A stream of the reports of all deliveries, each as it ends, buffered as by ``notifications(of:bufferingNewest:)``.
  public func reports(bufferingNewest count: Int = 16) -> AsyncStream<LifecycleReport> {
    core.stream(of: LifecycleReport.self, bufferingNewest: count)
  }

  // MARK: Requests

  /// Delivers a custom notification, and returns when every hook for it has ended.
  ///
  /// The delivery waits for its turn, unless that would wait for the poster. In these cases it begins at once, beside
  /// other deliveries and in spite of a hold: in a hook, within its deadline; in work in the foreground that a pause,
  /// or the foreground, waits for; and once the poster's task is cancelled. In the set-up of `runAndExit` this returns
  /// at once, with an empty report, and the notification is delivered after the launch. Once the termination has begun,
  /// no hook is called; all are reported as `skipped(.overtaken)`.
  ///
  /// - Returns: What each hook did.
  @discardableResult
  nonisolated(nonsending) public func post(_ notification: some CustomNotification) async
    -> LifecycleReport
  {
    await core.post(notification)
  }

  /// Adds a reason for being in the background, until it is removed, and returns at once. Before the launch it makes the
  /// daemon launch into the background:
  ///
  /// ```swift
  /// configuration.interfaces += [.pausing(whileInactive: "standby-a.target")]
  /// let lifecycle = LifecycleSubject(configuration: configuration)
  /// // Until systemd reports that the unit is active; without it, for ever.
  /// lifecycle.pause(for: BackgroundReason("standby-a.target"))
  /// ```
  public func pause(for reason: BackgroundReason) {
    core.receive(LifecycleEvent(.pause(for: reason)))
  }

  /// Removes a reason for being in the background, and returns at once. The daemon enters the foreground when none is
  /// left.
  public func resume(for reason: BackgroundReason) {
    core.receive(LifecycleEvent(.resume(for: reason)))
  }

  /// Requests ShouldSaveState, and returns at once. Once a stop has begun to pause the daemon, its own save counts.
  public func saveState() { core.receive(LifecycleEvent(.saveState)) }

  /// Requests ShouldSaveState and ShouldReload, and returns at once.
  public func reload() { core.receive(LifecycleEvent(.reload)) }

  /// Requests the termination, and returns at once. Unlike a signal, a second call does not escalate. In the
  /// ``LifecycleConfiguration/stopDelay`` of an earlier request without a status, it sets the status.
  ///
  /// - Parameters:
  ///   - reason: The cause in reports, systemd's status and the journal, such as `the disk is full`. Default: `a call`.
  ///   - exitStatus: The status to exit with, from 1 to 255, as for an error that work throws; any other counts as 1. 0
  ///     and `nil`, the default: the status that the hooks give.
  public func terminate(because reason: String? = nil, exitStatus: Int32? = nil) {
    core.harness?.didCall("terminate()")
    let cause = LifecycleCause(
      reason.map { .other($0) } ?? .api,
      status: exitStatus.flatMap { $0 == 0 ? nil : Failure.status($0) })
    core.receive(LifecycleEvent(.terminate, cause: cause))
  }

  /// Postpones deliveries until the token is cancelled or released: for start-up code that must not be interrupted.
  ///
  /// Requests that arrive meanwhile are then delivered in order. A delivery that has begun goes on. The launch and the
  /// termination are not postponed.
  public func holdDeliveries() -> LifecycleToken { core.hold() }

  /// Returns the systemd job that terminates the service, such as a restart or a stop.
  ///
  /// ```swift
  /// func willTerminate(_ notification: WillTerminate) async {
  ///   let job = await lifecycle.unitJob()
  ///   if job?.isRestart ?? true { return handOver() }
  ///   await finishConnections()
  /// }
  /// ```
  ///
  /// The job is read over the bus, in about a millisecond, when a drain or the termination begins. Before that the
  /// result is `nil`, at once.
  ///
  /// - Parameter limit: How long to wait for the answer. Default 1 s. In a hook, no longer than until its deadline.
  /// - Returns: The job, whose members need `import DaemonSystemd`; `nil` when systemd did not request the end, as
  ///   after kill(1), or did not answer in time.
  nonisolated(nonsending) public func unitJob(
    within limit: Duration = .seconds(1)
  ) async -> UnitJob? {
    await core.unitJob(within: limit)
  }

  /// The descriptors and bytes that the service manager keeps between two runs.
  ///
  /// ```swift
  /// let kept = try lifecycle.preservation()
  /// let listener = try kept.preserved(named: "http", as: .listeningStream)
  /// try kept.closeUnknown()
  /// ```
  ///
  /// The first access takes over the descriptors that systemd has passed to this process, so access it early. They can
  /// be taken over only once in a process: by a subject, or by `Preservation()`. Without systemd it is empty and keeps
  /// nothing. A mock has what an earlier mock with the same `FakeServiceManager` preserved. Its members need
  /// `import DaemonSystemd`.
  ///
  /// - Throws: `SystemdError` when the variables or descriptors that systemd passed are malformed.
  public func preservation() throws(SystemdError) -> Preservation { try core.preservation.get() }

  // MARK: Time and threads

  /// An asynchronous sequence that ticks at once and then every `interval`, on the subject's clock.
  ///
  /// A slow consumer skips ticks rather than receiving them late; the elements count intervals, skipped ones too. Each
  /// loop over the sequence begins at 0, so a resume ticks at once: <doc:PausingAPoller> says how the rate is kept.
  ///
  /// - Parameters:
  ///   - interval: The time between two ticks; at least a nanosecond.
  ///   - spread: Delays the first tick, and with it all others, by a random time below this, another one for each loop:
  ///     many daemons that start, or resume, together then do not poll in the same second. In a mock the `seed` and the
  ///     order of the loops decide. Default zero.
  /// - Returns: A sequence that throws `CancellationError` when its task is cancelled.
  public func ticks(
    every interval: Duration, spread: Duration = .zero
  ) -> some AsyncSequence<Int, CancellationError> & Sendable {
    LifecycleTicks(clock: clock, interval: interval, spread: spread)
  }

  /// Makes an executor on the subject's own threads, for an actor whose hooks must run even while Swift's cooperative
  /// pool is blocked.
  public func makeSerialExecutor() -> LifecycleSerialExecutor {
    LifecycleSerialExecutor(executor: core.executor)
  }
}
