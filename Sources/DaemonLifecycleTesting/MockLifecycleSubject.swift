// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import DaemonSystemd

/// A stand-in for `LifecycleSubject` in tests: the same registry and delivery, without signals, on a clock that only
/// the test moves.
///
/// ```swift
/// @Test func savesWhenPaused() async throws {
///   let mock = MockLifecycleSubject()
///   let poller = Poller()
///   mock.addObserver(poller)
///   // Returns when every hook has ended; throws what failed.
///   try await mock.send(.sigusr1).check()
///   #expect(mock.calls == ["addObserver(Poller)"])
///   try mock.checkNothingPending()
/// }
/// ```
///
/// A mock in the foreground delivers nothing until the test calls `send`, `inject`, `post`, `advance`,
/// `waitUntilSettled`, `waitUntilSleeping` or a method such as `pause(for:)`. Then it is launched: all observers that were
/// added receive the launch and the foreground, together and in order, and a hook of the launch that fails ends it. A
/// test that waits in another way calls `try await mock.waitUntilInForeground()` first.
///
/// A method that waits in vain throws, after `patience`, a ``PendingError`` that lists what is pending.
///
/// It works in XCTest and Swift Testing and has no global state, so tests may run in parallel. Safe to use from any
/// thread.
public final class MockLifecycleSubject: LifecycleObservable {
  /// The package's own, without public members.
  @_documentation(visibility: internal)
  public let _core: LifecycleCore
  private let harness: Harness
  private let patience: Duration

  /// Makes a mock in a given state. In the state `.launching`, ``launch()`` launches it; in the foreground or the
  /// background, the test's first event does. A mock in the background is paused (`BackgroundReason.operator`).
  ///
  /// A service manager receives the messages for systemd, beginning with the launch. The mock is passed the descriptors
  /// that the manager has stored at this moment, so two mocks are two runs of a daemon.
  ///
  /// - Parameters:
  ///   - state: The daemon's state. Default: the foreground.
  ///   - configuration: The settings, as of a subject. A mock recognizes no platform: without a `stopTimeout` a stop has
  ///     90 s. Default: problems are not logged.
  ///   - serviceManager: The stand-in for systemd. Default: none.
  ///   - patience: How long, in real time, a test waits while no hook begins or ends. Default 10 s.
  ///   - seed: Decides all that is random in a daemon, such as the `spread` of ticks. Default 0.
  public convenience init(
    state: LifecycleState = .foreground,
    configuration: LifecycleConfiguration = LifecycleConfiguration(logging: .off),
    serviceManager: FakeServiceManager? = nil, patience: Duration = .seconds(10), seed: UInt64 = 0
  ) {
    self.init(
      state: state, configuration: configuration, serviceManager: serviceManager,
      patience: patience, seed: seed, pool: nil)
  }

  package init(
    state: LifecycleState, configuration: LifecycleConfiguration,
    serviceManager: FakeServiceManager? = nil, patience: Duration = .seconds(10),
    seed: UInt64 = 0, pool: (any TaskExecutor)?
  ) {
    let isAtWork = state == .foreground || state == .background
    let harness = Harness(isAtWork ? state : nil)
    self.patience = patience
    self.harness = harness
    // Read now, and not at the first use: descriptors that this run stores are for the next.
    let passed = serviceManager.map { manager in
      manager.willRestart()
      return Result { () throws(SystemdError) in try manager.storedDuplicates() }
    }
    _core = LifecycleCore(
      testing: configuration, initialState: state, seed: seed, pool: pool, harness: harness,
      notifyAddress: serviceManager?.address,
      preservation: { () throws(SystemdError) in
        let environment = ServiceEnvironment(serviceManager?.environment ?? [:])
        guard let passed else { return try Preservation(environment) }
        return try Preservation(environment) { () throws(SystemdError) in try passed.get() }
      },
      exitProcess: { code in harness.change { $0.exitStatus = code } })
  }

  deinit { core.close() }

  // MARK: Events

  /// Simulates a signal, and returns a report when the last hook has ended.
  ///
  /// Earlier events are delivered first, such as the launch to observers that were just added. The report is empty when
  /// the signal is not in the signal map, or changes nothing. To test a hook that does not end, use
  /// ``inject(_:fromPID:uid:)``, ``advance(by:)`` and ``waitUntilSettled()``.
  ///
  /// - Parameters:
  ///   - signal: The signal.
  ///   - pid: The sender's process ID. Default 1, which is the service manager's.
  ///   - uid: The sender's user ID. Default 0.
  /// - Returns: What each hook did.
  /// - Throws: ``PendingError`` when nothing happens for `patience`, or when the task is cancelled.
  @discardableResult
  nonisolated(nonsending) public func send(
    _ signal: UnixSignal, fromPID pid: Int32 = 1, uid: UInt32 = 0
  ) async throws(PendingError) -> LifecycleReport {
    try await report(of: Self.cause(signal, pid, uid), "send(\(signal))") {
      inject(signal, fromPID: pid, uid: uid)
    }
  }

  /// Simulates a request, otherwise as ``send(_:fromPID:uid:)``.
  @discardableResult
  nonisolated(nonsending) public func send(
    _ request: LifecycleRequest
  ) async throws(PendingError) -> LifecycleReport {
    try await report(of: Self.cause, "send(\(request))") { inject(request) }
  }

  /// Simulates a signal, as ``send(_:fromPID:uid:)``, and returns without waiting for the hooks. As a test's first event
  /// it is delivered after the launch and the foreground.
  public func inject(_ signal: UnixSignal, fromPID pid: Int32 = 1, uid: UInt32 = 0) {
    let event = core.configuration.signals.event(of: signal, Self.cause(signal, pid, uid))
    if let event { core.receive(event) }
  }

  /// Simulates a request, and returns without waiting for the hooks.
  public func inject(_ request: LifecycleRequest) {
    core.receive(LifecycleEvent(request, cause: Self.cause))
  }

  /// Launches a mock that was made in the state `.launching`, and returns the report of the launch.
  @discardableResult
  nonisolated(nonsending) public func launch() async throws(PendingError) -> LifecycleReport {
    let cause = LifecycleCause(.launch)
    let before = harness.current.reports.count
    core.launch { true }
    try await core.untilIdle(patience: patience, for: "launch()")
    return report(since: before, cause, where: Self.isOfLaunch)
  }

  /// Returns when every hook has ended and nothing waits to be delivered. Deliveries that are held back are not waited
  /// for.
  ///
  /// - Returns: A report with all entries so far.
  @discardableResult
  nonisolated(nonsending) public func waitUntilSettled() async throws(PendingError)
    -> LifecycleReport
  {
    try await core.untilIdle(patience: patience, for: "waitUntilSettled()")
    return report(since: 0, Self.cause)
  }

  /// Waits until every hook has ended, and throws unless the daemon is then in the foreground with all of its
  /// observers.
  nonisolated(nonsending) public func waitUntilInForeground() async throws(PendingError) {
    let report = try await waitUntilSettled()
    if core.isReady { return }
    let reason = "waitUntilInForeground(): the daemon is in the state \(state), and not ready."
    let problems = report.problems.map { "\($0)." }
    throw PendingError(
      reason: ([reason] + problems).joined(separator: " "), pending: core.pending)
  }

  /// Moves the mock's clock: hooks reach their deadlines, sleeps on `clock` end and ticks are due, one after another.
  /// Tasks that a timer wakes run, and loops sleep again, before the next timer.
  ///
  /// A task that has not reached its first sleep yet is not woken: wait for it with ``waitUntilSleeping(_:)`` first.
  nonisolated(nonsending) public func advance(by duration: Duration) async {
    await core.advance(by: duration)
  }

  /// Returns when `count` tasks or more sleep on the mock's clock. Call it before ``advance(by:)``.
  ///
  /// A `StateSaver` with `every:` is one of them, and so is work that has failed and waits to be run again.
  nonisolated(nonsending) public func waitUntilSleeping(_ count: Int = 1) async throws(PendingError)
  {
    try await core.waitUntilSleeping(count, patience: patience)
  }

  /// Performs `event` once earlier events have been delivered, and returns its report.
  nonisolated(nonsending) private func report(
    of cause: LifecycleCause, _ call: String, _ event: () -> Void
  ) async throws(PendingError) -> LifecycleReport {
    let first = harness.current.reports.count
    try await core.untilIdle(patience: patience, for: call)
    // A launch that fails ends a daemon: the report of the next event includes it.
    let hasFailed = harness.current.reports.dropFirst(first).contains {
      Self.isOfLaunch($0) && !$0.problems.isEmpty
    }
    let before = hasFailed ? first : harness.current.reports.count
    event()
    try await core.untilIdle(patience: patience, for: call)
    return report(since: before, cause)
  }

  private static func isOfLaunch(_ report: LifecycleReport) -> Bool {
    if case .launch = report.cause.origin { true } else { false }
  }

  private func report(
    since count: Int, _ cause: LifecycleCause,
    where isIncluded: (LifecycleReport) -> Bool = { _ in true }
  ) -> LifecycleReport {
    let reports = harness.current.reports.dropFirst(count).filter(isIncluded)
    // A single report keeps its span, and so the title of its timeline.
    if reports.count == 1, let report = reports.first { return report }
    return LifecycleReport(cause: cause, entries: reports.flatMap(\.entries))
  }

  private static var cause: LifecycleCause { LifecycleCause(.other("a test")) }

  private static func cause(_ signal: UnixSignal, _ pid: Int32, _ uid: UInt32) -> LifecycleCause {
    LifecycleCause(.signal(signal, pid: pid, uid: uid))
  }

  /// Sets the systemd job of the service, which `unitJob(within:)` returns once the mock drains or terminates. At first
  /// it is `nil`.
  public func setUnitJob(_ job: UnitJob?) { core.unitJobIsKnown(job, isFinal: true) }

  // MARK: The record

  /// The calls of the mock's methods by the code under test so far, in order: `addObserver(Poller)`, `post(Rotated())`,
  /// `observe(closure at Clockd/Clock.swift:12)`, `removeObserver(Poller)`, `holdDeliveries()` and `terminate()`. A
  /// closure is named after its owner's type, or its file and line.
  public var calls: [String] { harness.current.calls }

  /// The notifications delivered so far, in order; each once, however many observers received it.
  public var delivered: [any LifecycleNotification] { harness.current.delivered }

  /// The reports so far, in order: one for each event that was delivered.
  public var reports: [LifecycleReport] { harness.current.reports }

  /// The status with which a third signal, a lost lease or the end of `exitGrace` would have ended the process, or `nil`.
  public var immediateExitStatus: Int32? { harness.current.exitStatus }

  // MARK: Ending a test

  /// Throws an error when a hook, a sleep, a hold or an event is still pending: for the end of a test.
  ///
  /// - Throws: ``PendingError``, which lists them.
  public func checkNothingPending() throws(PendingError) {
    let pending = core.pending
    if !pending.isEmpty { throw PendingError(reason: nil, pending: pending) }
  }

  /// The error of a test that left something pending, or waited for it too long.
  public struct PendingError: Error, CustomStringConvertible {
    /// The reason why a wait ended; `nil` for `checkNothingPending()`.
    let reason: String?
    /// One sentence for each thing that is pending.
    package let pending: [String]

    /// The reason and the pending things in words, for a failure message.
    public var description: String {
      let rest =
        pending.isEmpty
        ? "Nothing is pending." : "Still pending: \(pending.joined(separator: "; "))."
      return [reason, rest].compactMap { $0 }.joined(separator: " ")
    }
  }
}
