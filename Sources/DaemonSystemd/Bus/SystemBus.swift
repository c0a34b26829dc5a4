import CLinux
import Synchronization

/// systemd and logind as `async` functions and sequences, on one thread of its own.
///
///     let bus = SystemBus()
///     for try await state in bus.activeState(of: "postgresql.service") {
///       print("The database is \(state).")
///     }
///
/// It connects when first asked, keeps the connection up, and ends with `close()` or when neither it nor a
/// sequence of its is used any more. Its thread takes no signals and sleeps while nothing happens. Without a
/// bus each function throws `BusError.unavailable`, at once or as soon as that is known. Cancelling the task
/// that waits makes a function throw `CancellationError`.
///
/// With an event loop of your own use ``BusSession`` with ``Login1`` and ``Systemd1``: the same logic.
public final class SystemBus: Sendable {
  /// What everything here goes through; for calls and matches of your own.
  public let session: BusSession
  private let login: Login1
  private let manager: Systemd1
  private let isRunning = Mutex(false)

  /// The system bus, or another one: a user service reaches its service manager on `.user`, and logind on
  /// `.system`.
  public init(_ address: BusAddress = .system, options: BusSession.Options = .init()) {
    session = BusSession(address, options: options)
    login = Login1(session)
    manager = Systemd1(session)
  }

  deinit { close() }

  /// Ends the connection and the thread. Waiting functions throw `BusError.closed`, sequences finish.
  public func close() { session.close() }

  // MARK: Questions

  /// Calls any method.
  public func call(
    _ method: BusMethod, arguments: [BusValue] = [], timeout: Duration = .seconds(25)
  ) async throws -> [BusValue] {
    try await answer {
      self.session.call(method, arguments: arguments, timeout: timeout, completion: $0)
    }
  }

  /// Reads any property.
  public func property(_ name: String, of object: BusObject) async throws -> BusValue {
    try await answer { self.session.property(name, of: object, completion: $0) }
  }

  /// How long this service has from SIGTERM to its end; `nil` is infinity.
  public func timeoutStop() async throws -> Duration? {
    try await answer { self.manager.timeoutStop(completion: $0) }
  }

  /// The signal that asks this service to reload; since systemd 253.
  public func reloadSignal() async throws -> Int32 {
    try await answer { self.manager.reloadSignal(completion: $0) }
  }

  /// What systemd is about to do with this service; after SIGTERM `.restart`, `.stop` or `nil`.
  public func ownJob() async throws -> UnitJob? {
    try await answer { self.manager.ownJob(completion: $0) }
  }

  /// Asks logind for a lock; see ``Login1/inhibit(_:who:why:mode:timeout:completion:)``.
  public func inhibit(
    _ operations: InhibitorLock.Operations, who: String, why: String,
    mode: InhibitorLock.Mode = .delay
  ) async throws -> InhibitorLock {
    try await answer {
      self.login.inhibit(operations, who: who, why: why, mode: mode, completion: $0)
    }
  }

  /// For how long a delay lock can hold the machine back.
  public func inhibitDelayMax() async throws -> Duration {
    try await answer { self.login.inhibitDelayMax(completion: $0) }
  }

  private func answer<Value: Sendable>(
    _ ask: @Sendable (@escaping @Sendable (Result<Value, BusError>) -> Void) -> Void
  ) async throws -> Value {
    try begin()
    let once = BusContinuation<Value>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        once.set(continuation)
        ask { once.resume(with: $0.mapError { $0 }) }
      }
    } onCancel: {
      once.resume(with: .failure(CancellationError()))
    }
  }

  // MARK: Sequences

  /// Each sleep and each wake-up of the machine.
  ///
  /// A sequence that can't begin throws. One that began goes on over a lost bus and a restarted service.
  public func sleepEvents() -> AsyncThrowingStream<SleepEvent, any Error> {
    stream { self.login.watchSleep(established: $0, $1) }
  }

  /// Each shutdown of the machine, and each that is called off.
  public func shutdownEvents() -> AsyncThrowingStream<ShutdownEvent, any Error> {
    stream { self.login.watchShutdown(established: $0, $1) }
  }

  /// The state of the user's session at the machine, for user services.
  public func userSessionStates() -> AsyncThrowingStream<UserSessionState, any Error> {
    stream { self.login.watchUserSession($1) }
  }

  /// A unit's state: what it is now, then each change, without repeats. Throws `BusError.invalidArgument`
  /// for a name that is none, `BusError.noSuchUnit` for one that systemd does not know.
  public func activeState(of unit: String) -> AsyncThrowingStream<UnitActiveState, any Error> {
    let name: UnitName
    do throws(BusError) {
      name = try UnitName(unit)
    } catch {
      return AsyncThrowingStream { $0.finish(throwing: error) }
    }
    return stream { self.manager.watchActiveState(of: name, $1) }
  }

  /// The 256 newest are kept for a consumer who is slow.
  private func stream<Event: Sendable>(
    _ watch: (
      _ established: @escaping @Sendable () -> Void,
      _ handler: @escaping @Sendable (Result<Event, BusError>) -> Void
    ) -> BusWatch
  ) -> AsyncThrowingStream<Event, any Error> {
    let (stream, continuation) = AsyncThrowingStream<Event, any Error>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    do throws(BusError) {
      try begin()
    } catch {
      continuation.finish(throwing: error)
      return stream
    }
    let hasBegun = BusMemory(false)
    let begun: @Sendable () -> Void = { _ = hasBegun.change(to: true) }
    let token = watch(begun) { event in
      switch event {
      case .success(let event):
        _ = hasBegun.change(to: true)
        continuation.yield(event)
      case .failure(.closed): continuation.finish()
      case .failure(let error): if !hasBegun.current { continuation.finish(throwing: error) }
      }
    }
    // The sequence keeps the bus and the watch until it ends.
    continuation.onTermination = { _ in
      token.cancel()
      withExtendedLifetime(self) {}
    }
    return stream
  }

  // MARK: The thread

  /// Starts the thread and the connection, once.
  private func begin() throws(BusError) {
    let started = isRunning.withLock { isRunning in
      if !isRunning { isRunning = BusThread.serve(session) }
      return isRunning
    }
    guard started else { throw .system("start a thread for the bus", errno: EAGAIN) }
    session.start()
  }
}

/// Resumes a continuation once, by whoever comes first; an outcome may come before the continuation.
private final class BusContinuation<Value: Sendable>: Sendable {
  private enum State {
    case waiting
    case suspended(CheckedContinuation<Value, any Error>)
    case early(Result<Value, any Error>)
    case done
  }

  private let state = Mutex(State.waiting)

  func set(_ continuation: CheckedContinuation<Value, any Error>) {
    let early = state.withLock { state -> Result<Value, any Error>? in
      if case .early(let outcome) = state {
        state = .done
        return outcome
      }
      state = .suspended(continuation)
      return nil
    }
    if let early { continuation.resume(with: early) }
  }

  func resume(with outcome: Result<Value, any Error>) {
    let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
      switch state {
      case .waiting:
        state = .early(outcome)
        return nil
      case .suspended(let continuation):
        state = .done
        return continuation
      case .early, .done: return nil
      }
    }
    continuation?.resume(with: outcome)
  }
}
