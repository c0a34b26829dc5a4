import CLinux
import Synchronization

/// Keeps a connection to a bus up, on a thread of yours.
///
/// Nothing here waits: `start` only asks for a connection, and `process` does what can be done at once. A
/// lost connection is made again, after 0.1 s at first and 30 s at last, for ever. Callbacks run inside
/// `process`, on the thread that calls it, which may be another one each time, one at a time.
package final class BusSession: Sendable {
  package struct Options: Sendable {
    /// Before the first attempt to connect again; 0.1 s. It doubles with each attempt.
    package var firstDelay = Duration.milliseconds(100)
    /// The longest delay between two attempts; 30 s.
    package var longestDelay = Duration.seconds(30)
    /// How long a bus may take to welcome us; 25 s, since activation of the bus itself takes time.
    package var connectTimeout = Duration.seconds(25)
    /// The library to load, by dlopen(3)'s rules.
    package var library = BusLibrary.standardName
    /// Messages handled in one `process`, so that a storm of signals leaves room for other work.
    var stepsAtOnce = 128

    package init() {}
  }

  private struct Shared {
    var isStarted = false
    var isClosed = false
    /// Whether a thread is in the engine. Who finds this false sets it, and then owns the engine.
    var hasTurn = false
    /// What the next turn sees to, in order.
    var requests: [BusRequest] = []
    var lastID: UInt64 = 0
  }

  private let shared = Mutex(Shared())
  private let poll = BusPoll()
  /// Touched only by the thread that has set `hasTurn`; the mutex orders one turn after the other.
  nonisolated(unsafe) private let engine: BusEngine
  /// How long to wait before something is tried again; the same delays as between two attempts to connect.
  let backOff: BusBackOff
  /// Who made the session; any other process is a fork.
  private let maker = getpid()

  package init(_ address: BusAddress, options: Options = Options()) {
    engine = BusEngine(address, options, poll)
    backOff = BusBackOff(first: options.firstDelay, longest: options.longestDelay)
  }

  deinit { close() }

  // MARK: For the owner's loop

  /// Readable when `process` should be called; the same number from `init` to the end of this object, -1
  /// when there was no descriptor left. Level-triggered; poll it, never read it.
  package var fileDescriptor: Int32 { poll.descriptor }

  /// Asks for the connection. Returns at once; what comes of it is known after some `process`.
  package func start() {
    shared.withLock { $0.isStarted = true }
    wake()
  }

  /// Does what can be done now, and runs callbacks. Never waits; does nothing when another thread, or a
  /// caller further up on this one, is in it.
  ///
  /// The first call loads libsystemd (dlopen(3)).
  package func process() {
    let turn = shared.withLock { shared -> (requests: [BusRequest], started: Bool)? in
      guard !shared.hasTurn, !shared.isClosed else { return nil }
      shared.hasTurn = true
      return (shared.requests.takeAll(), shared.isStarted)
    }
    guard let turn else { return }
    if isFork {
      for request in turn.requests { request.refuse(.afterFork) }
    } else {
      engine.run(turn.requests, started: turn.started) { shared.withLock(\.isClosed) }
    }
    endTurn()
  }

  /// Ends the connection for good. Every call and request without an answer gets `BusError.closed`, every
  /// observer hears of it, and no callback begins after that. Idempotent, from any thread; if another
  /// thread is inside `process`, the ending is done there, as soon as its callback returns.
  package func close() {
    let mine = shared.withLock { shared in
      shared.isClosed = true
      guard !shared.hasTurn else { return false }
      shared.hasTurn = true
      return true
    }
    if mine { endTurn() }
    wake()
  }

  package var isClosed: Bool { shared.withLock(\.isClosed) }

  private func endTurn() {
    while true {
      let left = shared.withLock { shared -> [BusRequest]? in
        guard shared.isClosed else {
          shared.hasTurn = false
          return nil
        }
        if shared.requests.isEmpty, engine.isClosed {
          shared.hasTurn = false
          return nil
        }
        return shared.requests.takeAll()
      }
      guard let left else { return }
      engine.close(left, isFork ? .afterFork : .closed)
    }
  }

  // MARK: From any thread

  /// Runs `body` inside the next `process`, with the connection. While one is being made it waits for that;
  /// when none can be had it gets the reason instead. It is called exactly once.
  package func perform(_ body: @escaping @Sendable (Result<BusConnection, BusError>) -> Void) {
    enqueue(.perform(body))
  }

  /// Runs `body` as `perform` does, but not before the delay is over.
  package func perform(
    after delay: Duration, _ body: @escaping @Sendable (Result<BusConnection, BusError>) -> Void
  ) {
    enqueue(.performLater(.after(delay), body))
  }

  /// Tells `observer` of each connection, the present one included, until the watch is cancelled or gone.
  package func observe(_ observer: BusSessionObserver) -> BusWatch {
    let id = shared.withLock { shared in
      shared.lastID += 1
      return shared.lastID
    }
    enqueue(.observe(id, observer))
    return BusWatch { [weak self] in self?.enqueue(.forget(id)) }
  }

  private func enqueue(_ request: BusRequest) {
    let tooLate = shared.withLock { shared in
      // While a turn goes on, whoever has it takes the rest along.
      if shared.isClosed, !shared.hasTurn { return true }
      shared.requests.append(request)
      return false
    }
    if tooLate { return request.refuse(isFork ? .afterFork : .closed) }
    wake()
  }

  /// In a fork the eventfd is the parent's too: its thread is not to be woken for ours.
  private func wake() { if !isFork { poll.wake() } }

  private var isFork: Bool { getpid() != maker }
}

/// Hears of a session's connections. Both functions run inside `BusSession.process`.
package struct BusSessionObserver: Sendable {
  /// A connection is up: make your matches and read what you need.
  package let connected: @Sendable (BusConnection) -> Void
  /// It is lost, or none can be had: once, however many attempts follow. With `closed`: for ever.
  package let disconnected: @Sendable (BusError) -> Void

  package init(
    connected: @escaping @Sendable (BusConnection) -> Void,
    disconnected: @escaping @Sendable (BusError) -> Void = { _ in }
  ) {
    self.connected = connected
    self.disconnected = disconnected
  }
}

/// What the owner's thread is asked to see to.
enum BusRequest: Sendable {
  case perform(@Sendable (Result<BusConnection, BusError>) -> Void)
  /// Becomes a `perform` at that time.
  case performLater(MonotonicTime, @Sendable (Result<BusConnection, BusError>) -> Void)
  case observe(UInt64, BusSessionObserver)
  case forget(UInt64)

  /// It will not be done.
  func refuse(_ error: BusError) {
    switch self {
    case .perform(let body), .performLater(_, let body): body(.failure(error))
    case .observe(_, let observer): observer.disconnected(error)
    case .forget: break
    }
  }
}

extension Array {
  mutating func takeAll() -> [Element] {
    defer { self = [] }
    return self
  }
}
