// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import DaemonSystemd
import Synchronization

/// Stands in for a `LifecycleSubject` in tests: the same registry and delivery, without signals and on a
/// clock that only the test moves.
///
/// ```swift
/// @Test func savesWhenPaused() async throws {
///   let mock = MockLifecycleSubject()
///   let poller = Poller(lifecycle: mock)              // takes `any LifecycleObservable`
///   let report = try await mock.send(.sigusr1)        // returns when every hook has ended
///   #expect(report.problems.isEmpty)
///   #expect(mock.addObserverWasCalled)
///   try mock.checkNothingPending()
/// }
/// ```
///
/// A mock of a daemon at work delivers nothing until its test asks for something: then all that was added hears the
/// launch and the foreground, together and in order. `send`, `inject`, `post`, `settled`, `advance`, `untilSleeping` and
/// calls such as `pause()` ask. A test that waits by its own means asks first: `try await mock.settled()`.
///
/// No wait of a mock is for ever: what it waits for in vain is thrown, in a sentence (``PendingError``).
///
/// Works in XCTest and Swift Testing alike and keeps no state outside of itself, so tests may run in
/// parallel. Safe to use from any thread.
public final class MockLifecycleSubject: LifecycleObservable {
  public var _core: LifecycleCore { core }
  package let core: LifecycleCore
  private let recorder: Recorder
  private let patience: Duration

  /// A subject in `state`: in the foreground, as a daemon at work, unless said otherwise. A mock that is
  /// `.launching` goes on with `launch()`.
  ///
  /// Observers that are added to a mock that is not launching are told of the launch, and of the foreground, before
  /// anything else.
  ///
  /// A service manager is told what systemd would be, beginning with READY=1 of a daemon at work:
  ///
  /// ```swift
  /// let manager = try FakeServiceManager()
  /// let mock = MockLifecycleSubject(serviceManager: manager)
  /// try await mock.send(.sighup)
  /// #expect(manager.service.reloadsEnded == 1)
  /// #expect(manager.violations.isEmpty)
  /// ```
  ///
  /// It is passed what the manager has stored at this moment, so two mocks are two runs of a daemon:
  ///
  /// ```swift
  /// try MockLifecycleSubject(serviceManager: manager).preservation.preserve(bytes, named: "state")
  /// let restarted = MockLifecycleSubject(serviceManager: manager)
  /// #expect(try restarted.preservation.preservedBytes(named: "state") == bytes)
  /// ```
  ///
  /// - Parameters:
  ///   - state: Where the daemon is. Default: in the foreground.
  ///   - configuration: As a subject's. By default problems are not logged.
  ///   - serviceManager: What systemd would be. Default: there is none.
  ///   - patience: For how long of real time no hook may begin or end while a test waits. Default 10 s.
  public init(
    state: LifecycleState = .foreground,
    configuration: LifecycleConfiguration = LifecycleConfiguration(logsProblems: false),
    serviceManager: FakeServiceManager? = nil, patience: Duration = .seconds(10)
  ) {
    let recorder = Recorder()
    self.patience = patience
    self.recorder = recorder
    let passed = serviceManager.map(Self.passed)
    core = LifecycleCore(
      testing: configuration, initialState: state, recorder: recorder,
      notifyAddress: serviceManager?.address,
      preservation: { () throws(SystemdError) in
        let environment = ServiceEnvironment(serviceManager?.environment ?? [:])
        guard let passed else { return try Preservation(environment) }
        return Preservation(passed: try passed.get(), store: try DescriptorStore(environment))
      },
      exitProcess: { code in recorder.change { $0.exitCode = code } })
  }

  deinit { core.shutDown() }

  /// Now, and not at its first use: what this run stores is for the next.
  private static func passed(
    by manager: FakeServiceManager
  ) -> Result<PassedDescriptors, SystemdError> {
    manager.willRestart()
    return Result { () throws(SystemdError) in try manager.storedDuplicates() }
  }

  // MARK: Making things happen

  /// Acts as if the signal had come, and returns what every hook did when the last of them has ended.
  ///
  /// What came before is delivered first: observers just added have heard of the launch.
  /// An empty report when the signal is not in the signal map, or asks for what is already so. A hook that
  /// does not end needs its deadline: use `inject(_:)`, `advance(by:)` and `settled()`.
  ///
  /// - Throws: ``PendingError``, when it waits in vain or is cancelled.
  @discardableResult
  nonisolated(nonsending) public func send(
    _ signal: UnixSignal, fromPID pid: Int32 = 1, uid: UInt32 = 0
  ) async throws(PendingError) -> LifecycleReport {
    try await report(of: Self.cause(signal, pid, uid)) { inject(signal, fromPID: pid, uid: uid) }
  }

  /// Acts as if the event had happened, and returns what every hook did when the last of them has ended.
  ///
  /// - Parameters:
  ///   - event: A fact from outside, or a request.
  ///   - cause: The cause that hooks and the report see.
  /// - Throws: ``PendingError``, when it waits in vain or is cancelled.
  @discardableResult
  nonisolated(nonsending) public func send(
    _ event: Event, cause: LifecycleCause = LifecycleCause(.other("a test"))
  ) async throws(PendingError) -> LifecycleReport {
    try await report(of: cause) { inject(event, cause: cause) }
  }

  /// Acts as if the signal had come, without waiting for the hooks.
  public func inject(_ signal: UnixSignal, fromPID pid: Int32 = 1, uid: UInt32 = 0) {
    guard let event = core.event(for: signal, cause: Self.cause(signal, pid, uid)) else { return }
    core.send(event)
  }

  /// Acts as if the event had happened, without waiting for the hooks.
  public func inject(
    _ event: Event, cause: LifecycleCause = LifecycleCause(.other("a test"))
  ) {
    core.send(LifecycleEvent(event.kind, cause: cause))
  }

  /// A fact from outside that is not a signal, or a request.
  public enum Event: Sendable {
    /// There is a reason for being in the background.
    case enterBackground(BackgroundReason)
    /// That reason is gone.
    case enterForeground(BackgroundReason)
    /// The machine is about to sleep.
    case suspend
    /// The machine has woken up, or will not sleep after all.
    case resume
    /// Save state and go on.
    case saveState
    /// Save state, then reload.
    case reload
    /// A resource is short.
    case pressure(DidReceivePressure.Resource)
    /// The watchdog asks the observers whether they are well.
    case checkHealth
    /// End.
    case terminate

    fileprivate var kind: LifecycleEvent.Kind {
      switch self {
      case .enterBackground(let reason): .enterBackground(reason)
      case .enterForeground(let reason): .enterForeground(reason)
      case .suspend: .suspend
      case .resume: .resume
      case .saveState: .saveState
      case .reload: .reload
      case .pressure(let resource): .pressure(resource)
      case .checkHealth: .checkHealth
      case .terminate: .terminate
      }
    }
  }

  /// Launches a mock that was made `.launching`.
  ///
  /// - Throws: ``PendingError``, when it waits in vain or is cancelled.
  @discardableResult
  nonisolated(nonsending) public func launch() async throws(PendingError) -> LifecycleReport {
    let cause = LifecycleCause(.launch)
    let before = recorder.current.reports.count
    core.requestLaunch()
    try await untilIdle()
    let reports = recorder.current.reports.dropFirst(before).filter {
      if case .launch = $0.cause.origin { true } else { false }
    }
    return LifecycleReport(cause: cause, entries: reports.flatMap(\.entries))
  }

  /// Returns when every hook has ended and nothing waits to be delivered, with all that was reported so
  /// far. What is held back is not waited for.
  ///
  /// - Throws: ``PendingError``, when it waits in vain or is cancelled.
  @discardableResult
  nonisolated(nonsending) public func settled() async throws(PendingError) -> LifecycleReport {
    try await untilIdle()
    return report(since: 0, LifecycleCause(.other("a test")))
  }

  /// Lets the mock's time pass: hooks reach their deadlines, sleeps on `clock` end, ticks tick, one after
  /// another; what each wakes runs, and a loop sleeps again, before the next.
  ///
  /// A task that has not come to its first sleep yet can't be woken from it: wait for it with
  /// `untilSleeping(_:)` first.
  nonisolated(nonsending) public func advance(by duration: Duration) async {
    await core.advance(by: duration)
  }

  /// Returns when `count` tasks or more sleep on the mock's clock: the fact to wait for before `advance`.
  ///
  /// - Throws: ``PendingError``, when it waits in vain or is cancelled.
  nonisolated(nonsending) public func untilSleeping(_ count: Int = 1) async throws(PendingError) {
    do {
      try await core.untilSleeping(count, patience: patience)
    } catch { throw PendingError(error) }
  }

  /// What `event` leads to, when what came before has been delivered.
  nonisolated(nonsending) private func report(
    of cause: LifecycleCause, _ event: () -> Void
  ) async throws(PendingError) -> LifecycleReport {
    try await untilIdle()
    let before = recorder.current.reports.count
    event()
    try await untilIdle()
    return report(since: before, cause)
  }

  nonisolated(nonsending) private func untilIdle() async throws(PendingError) {
    do { try await core.untilIdle(patience: patience) } catch { throw PendingError(error) }
  }

  private func report(since count: Int, _ cause: LifecycleCause) -> LifecycleReport {
    LifecycleReport(
      cause: cause, entries: recorder.current.reports.dropFirst(count).flatMap(\.entries))
  }

  private static func cause(_ signal: UnixSignal, _ pid: Int32, _ uid: UInt32) -> LifecycleCause {
    LifecycleCause(.signal(signal, pid: pid, uid: uid, coalesced: 1))
  }

  /// Says what systemd is doing with the service: what `unitJob(within:)` answers from now on. `nil` until then. With
  /// `SystemdConfiguration.exitsWithFailureWhenKilled`, a job that stops makes any SIGTERM a stop.
  public func setUnitJob(_ job: UnitJob?) { core.unitJobIsKnown(job) }

  // MARK: The record

  /// A call of a method of the subject, by the code under test.
  public enum Call: Sendable, CustomStringConvertible {
    /// An observer was added: its type.
    case addObserver(any LifecycleObserver.Type)
    /// A closure: its owner's type, or where it was written.
    case observe(String)
    /// An observer, or an owner, was removed: its type.
    case removeObserver(any AnyObject.Type)
    /// A notification was posted.
    case post(any LifecycleNotification)
    /// Deliveries were held back.
    case holdDeliveries
    /// The end was asked for.
    case terminate

    public var description: String {
      switch self {
      case .addObserver(let type): "addObserver(\(type))"
      case .observe(let observer): "observe(\(observer))"
      case .removeObserver(let type): "removeObserver(\(type))"
      case .post(let notification): "post(\(notification))"
      case .holdDeliveries: "holdDeliveries()"
      case .terminate: "terminate()"
      }
    }
  }

  /// The calls so far, in order.
  public var calls: [Call] { recorder.current.calls }

  /// Whether `addObserver` was called.
  public var addObserverWasCalled: Bool {
    calls.contains { if case .addObserver = $0 { true } else { false } }
  }
  /// Whether `observe` or `observeAll` was called.
  public var observeWasCalled: Bool {
    calls.contains { if case .observe = $0 { true } else { false } }
  }
  /// Whether `removeObserver` was called.
  public var removeObserverWasCalled: Bool {
    calls.contains { if case .removeObserver = $0 { true } else { false } }
  }
  /// Whether `post` was called.
  public var postWasCalled: Bool {
    calls.contains { if case .post = $0 { true } else { false } }
  }
  /// Whether `terminate` was called.
  public var terminateWasCalled: Bool {
    calls.contains { if case .terminate = $0 { true } else { false } }
  }

  /// The notifications delivered so far, in order; each once, however many observers heard it.
  public var delivered: [any LifecycleNotification] { recorder.current.delivered }

  /// The reports so far, in order: one for each event that had something to deliver.
  public var reports: [LifecycleReport] { recorder.current.reports }

  /// The status with which the process would have been ended at once, by a third signal.
  public var immediateExitCode: Int32? { recorder.current.exitCode }

  // MARK: At the end of a test

  /// Throws when something has not come to its end: a hook, a sleep, a hold, an event.
  public func checkNothingPending() throws(PendingError) {
    let pending = core.pending
    if !pending.isEmpty { throw PendingError(reason: nil, pending: pending) }
  }

  /// What has not come to its end: thrown by `checkNothingPending()`, and by whatever waited for it in vain.
  public struct PendingError: Error, CustomStringConvertible {
    /// Why a wait has ended; `nil`: nothing waited.
    let reason: String?
    /// A sentence for each.
    public let pending: [String]

    public var description: String {
      let rest =
        pending.isEmpty
        ? "Nothing is pending." : "Still pending: \(pending.joined(separator: "; "))."
      return [reason, rest].compactMap { $0 }.joined(separator: " ")
    }
  }
}

extension MockLifecycleSubject.PendingError {
  fileprivate init(_ error: ImpatienceError) {
    self.init(reason: error.reason, pending: error.pending)
  }
}
