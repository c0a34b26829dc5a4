// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// A daemon's lifecycle: it turns signals and requests of systemd into notifications, and delivers them to observers in
/// order, each with a deadline, with a report of the outcome.
///
/// ```swift
/// @main struct Pollerd {
///   static func main() {
///     LifecycleSubject.runAndExit { lifecycle in
///       let poller = try Poller()
///       lifecycle.addObserver(poller)
///       lifecycle.addForeground(name: "polling") {
///         try await poller.work(lifecycle)
///       }
///     }
///   }
/// }
/// ```
///
/// Observers are retained until they are removed or the daemon has ended, unless they were added with
/// ``LifecycleObservable/addObserver(weakly:name:phase:timeout:)``. Objects that a set-up captures exist until the last
/// hook has ended.
///
/// Under an async `main`, or with work after the daemon's end, ``run(configuration:_:)`` does the same and returns. It
/// works in top-level code, and as process 1.
///
/// A process may have several subjects as long as no two of them handle the same signal. Only the first communicates
/// with systemd, since READY=1, STOPPING=1 and watchdog pings apply to the process as a whole; give the others
/// ``LifecycleInterfaces/plain``.
///
/// When a subject is deallocated, its threads end and the dispositions of its signals are restored. After `runAndExit`
/// with an `exitGrace` they are not, since the process is about to exit and a late signal must not change its status.
public final class LifecycleSubject: LifecycleObservable {
  /// The package's own, without public members.
  @_documentation(visibility: internal)
  public let _core: LifecycleCore
  /// From the start on, where there is a service manager.
  private let lease = Mutex<ServiceManagerLease?>(nil)

  /// Makes a subject that changes nothing in the process until `run`.
  ///
  /// - Parameter configuration: The settings. Default: those that suit a service.
  public init(configuration: LifecycleConfiguration = LifecycleConfiguration()) {
    _core = LifecycleCore(configuration: configuration, parts: nil)
  }

  deinit { core.close() }

  // MARK: Run

  /// Starts, and returns when the daemon has terminated: ``run(configuration:_:)`` for a caller that has set the subject
  /// up itself.
  ///
  /// ```swift
  /// let lifecycle = LifecycleSubject()
  /// lifecycle.addTask(name: "import") {
  ///   try await work()
  ///   lifecycle.terminate(because: "everything is imported")
  /// }
  /// let end = try await lifecycle.run()
  /// ```
  ///
  /// Cancelling the calling task terminates the daemon.
  ///
  /// A caller that is not isolated continues on the subject's own thread until it suspends again, so it can exit the
  /// process even while Swift's cooperative pool is blocked; with Swift 6.2 it continues once the pool is free. Only a
  /// third terminating signal, or a lost lease, ends a process that goes on.
  ///
  /// - Returns: The status to exit with, and the report of the termination.
  /// - Throws: `LifecycleError` when the start fails. An error of work is in the exit.
  nonisolated(nonsending) public func run() async throws -> LifecycleExit {
    try listen()
    return await core.run()
  }

  // MARK: Start

  /// Installs the signal handlers and opens the other inputs, so that the launch can follow.
  ///
  /// The C library's standard output, which `print` writes to, becomes line buffered where it is no terminal, so that
  /// each printed line appears at once in the journal, a container's log or a pipe. A program that has given it a larger
  /// buffer with setvbuf(3), or none, keeps that.
  func listen() throws {
    try DispatchPreparation.check()
    try core.markStarted()
    let configuration = core.configuration
    let lease = configuration.isSupervised ? ServiceManagerLease.take() : nil
    let take: @Sendable (SourceInput) -> Void = { [weak core] in core?.take($0) }
    let signals = SignalSource(
      map: configuration.signals, isSupervised: lease != nil, waker: core.executor.poll.waker,
      enqueue: { [weak core] in core?.executor.enqueue(.work($0)) }, report: take)
    do { try core.listen(to: signals) } catch {
      core.markStopped()
      throw error
    }
    // Nothing fails from here on, so a start that failed has changed nothing.
    clinux_line_buffer_output()
    core.executor.enqueue(.work { DispatchPreparation.begin() })
    self.lease.withLock { $0 = lease }
    let log = LifecycleLog(
      configuration.logging, configuration.environment, configuration.logQueue)
    let host = configuration.platform
    let platform = lease == nil ? host : nil
    var wiring = LifecycleWiring(
      configuration, isSupervised: lease != nil, platform: platform, log: log, take: take)
    // A container may have the socket of a manager outside, whose limit is not the container's. One inside replies later.
    if lease != nil, let host { take(.systemd(.stopTimeout(host.gracePeriod))) }
    // A daemon works without any of these. They are open before they receive facts: what they can't do at once, they do when
    // they are woken.
    for part in wiring.parts {
      do { try core.listen(to: part) } catch { log.warn("\(error)") }
    }
    wiring.parts.append(signals)
    core.connect(wiring, wiring.policy(of: configuration, on: platform))
    for problem in wiring.problems { log.warn(problem) }
    let exception = lease == nil ? "" : " TimeoutStopSec= counts instead where it can be read."
    if let host { log.info(host.sentence + exception) }
    if !DispatchPreparation.finish() {
      log.warn("Dispatch has no thread so far: if it gets none, raise TasksMax=.")
    }
  }

  /// Has the exit grace begin with the end of the daemon.
  package func expectExit() { core.handle(.exitExpected) }

  /// The first half of `run`, for tests of several subjects.
  @discardableResult
  package nonisolated(nonsending) func start() async throws -> LifecycleReport {
    try listen()
    return await core.launch()
  }

  /// The other half, after `start()`.
  package nonisolated(nonsending) func waitUntilTerminated() async -> LifecycleExit {
    expectExit()
    return await core.untilTerminated()
  }

  /// Restores the dispositions that the signals had before the start, without ending anything: for tests.
  package func restoreSignals() { core.closeParts { $0 is SignalSource } }
}
