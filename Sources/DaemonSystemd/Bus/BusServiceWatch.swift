import Synchronization

/// Follows a service's state, whatever restarts meanwhile: the bus, the service or neither.
///
/// For each connection first `listen` makes the matches, then `read` fetches what is so now; the bus keeps
/// that order, so nothing falls between the two. `read` is called again whenever the service has a new
/// process, since what the old one said last may be outdated.
final class BusServiceWatch<Value: Equatable & Sendable>: Sendable {
  typealias Step = @Sendable (BusConnection, BusServiceWatch<Value>) -> Void

  private struct State {
    var isCancelled = false
    /// Made on the present connection.
    var matches: [BusMatch] = []
    /// What was said last, to tell changes from repeats.
    var last: Value?
  }

  private let service: String
  private let state: Mutex<State>
  private let handler: @Sendable (Result<Value, BusError>) -> Void
  private let listen: Step
  private let read: Step

  /// - Parameter first: What need not be said at first.
  init(
    _ service: String, first: Value? = nil,
    handler: @escaping @Sendable (Result<Value, BusError>) -> Void,
    listen: @escaping Step, read: @escaping Step
  ) {
    self.service = service
    state = Mutex(State(last: first))
    self.handler = handler
    self.listen = listen
    self.read = read
  }

  /// Begins; the token that is returned keeps it going.
  func start(on session: BusSession) -> BusWatch {
    let connections = session.observe(
      BusSessionObserver(
        connected: { self.begin(on: $0) }, disconnected: { self.emit(.failure($0)) }))
    return BusWatch { [weak session] in
      connections.cancel()
      let matches = self.end()
      guard !matches.isEmpty else { return }
      session?.perform { connection in
        guard case .success(let connection) = connection else { return }
        for match in matches { connection.cancel(match) }
      }
    }
  }

  private func begin(on connection: BusConnection) {
    let isCancelled = state.withLock { state in
      state.matches = []
      return state.isCancelled
    }
    guard !isCancelled else { return }
    listen(connection, self)
    keep(connection.onNewOwner(of: service) { [self] in read($0, self) }, of: connection)
    read(connection, self)
  }

  private func end() -> [BusMatch] {
    state.withLock { state in
      state.isCancelled = true
      return state.matches.takeAll()
    }
  }

  // MARK: For `listen` and `read`

  /// Listens to a signal for as long as this watch lasts; a refusal is reported.
  func match(
    _ rule: BusMatchRule, on connection: BusConnection,
    handler: @escaping @Sendable (BusSignal) -> Void
  ) {
    let match = connection.match(rule) { [self] signal in
      switch signal {
      case .success(let signal): handler(signal)
      case .failure(let error): emit(.failure(error))
      }
    }
    keep(match, of: connection)
  }

  private func keep(_ match: BusMatch, of connection: BusConnection) {
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.matches.append(match) }
      return state.isCancelled
    }
    if isCancelled { connection.cancel(match) }
  }

  /// Passes on what is new, and every failure, unless the watch was cancelled.
  func emit(_ result: Result<Value, BusError>) {
    let isNews = state.withLock { state in
      guard !state.isCancelled else { return false }
      guard case .success(let value) = result else { return true }
      defer { state.last = value }
      return value != state.last
    }
    if isNews { handler(result) }
  }

  var last: Value? { state.withLock(\.last) }
}
