import CLinux

/// A session's state machine: connects, serves, loses, waits, connects again.
///
/// Not `Sendable`: the thread that has the session's turn uses it, no other.
final class BusEngine {
  enum State {
    /// Not asked to connect yet; next: connecting or absent.
    case idle
    /// sd-bus is at it; next: connected, or waiting when it failed or the deadline passed.
    case connecting(BusConnection, deadline: MonotonicTime)
    /// Usable; next: waiting, when it is lost.
    case connected(BusConnection, since: MonotonicTime)
    /// Until the next attempt; next: connecting.
    case waiting(until: MonotonicTime, BusError)
    /// There is no libsystemd, nor will there be; next: closed.
    case absent(BusError)
    case closed
  }

  private(set) var state = State.idle
  /// Whether the observers know that there is no connection; they hear of it once, not at each attempt.
  private var isAbsenceKnown = false
  private var backOff: BusBackOff
  /// The socket in the epoll set.
  private var watched: Int32?
  private var observers: [(id: UInt64, observer: BusSessionObserver)] = []
  /// Asked for while it is not known whether there will be a connection.
  private var held: [BusRequest] = []
  /// Asked for a later time, in no order.
  private var delayed:
    [(due: MonotonicTime, body: @Sendable (Result<BusConnection, BusError>) -> Void)] =
      []
  private let address: BusAddress
  private let options: BusSession.Options
  /// Who made it; a fork has a copy whose descriptors are the maker's too.
  private let maker = getpid()
  private let poll: BusPoll

  init(_ address: BusAddress, _ options: BusSession.Options, _ poll: BusPoll) {
    self.address = address
    self.options = options
    self.poll = poll
    backOff = BusBackOff(first: options.firstDelay, longest: options.longestDelay)
  }

  // MARK: A turn

  /// Does all that can be done now. `isClosed` is asked before each callback.
  func run(_ requests: [BusRequest], started: Bool, isClosed: () -> Bool) {
    poll.drain()
    held += requests
    takeDue()
    if started, case .idle = state { connect() }
    if case .waiting(let until, _) = state, MonotonicTime.now() >= until { connect() }
    serve(isClosed)
    advance(isClosed)
    serve(isClosed)
    rest()
  }

  /// Ends everything; each request and call that has no answer gets `error`.
  func close(_ requests: [BusRequest], _ error: BusError) {
    held += requests
    let connection = connection
    if getpid() == maker, let watched { poll.forget(watched) }
    state = .closed
    connection?.close(error)
    held += delayed.takeAll().map { .perform($0.body) }
    for request in held.takeAll() { request.refuse(error) }
    let observers = observers
    self.observers = []
    for (_, observer) in observers { observer.disconnected(error) }
    if getpid() == maker { poll.arm(at: nil) }
  }

  var isClosed: Bool { if case .closed = state { true } else { false } }

  private var connection: BusConnection? {
    switch state {
    case .connecting(let connection, _), .connected(let connection, _): connection
    case .idle, .waiting, .absent, .closed: nil
    }
  }

  // MARK: Connecting

  private func connect() {
    if let failure = poll.failure { return become(absent: failure) }
    let library: BusLibrary
    do throws(BusError) {
      library = try BusLibrary.load(options.library)
    } catch {
      return become(absent: error)
    }
    do throws(BusError) {
      let connection = try BusConnection(address, library: library)
      let deadline = MonotonicTime.after(options.connectTimeout)
      state = .connecting(connection, deadline: deadline)
    } catch {
      wait(error)
      tellAbsence(error)
    }
  }

  private func become(absent error: BusError) {
    state = .absent(error)
    tellAbsence(error)
  }

  /// Works on the connection until sd-bus has nothing more to do for now, or the others must have a turn.
  private func advance(_ isClosed: () -> Bool) {
    guard let connection else { return }
    for _ in 0..<options.stepsAtOnce {
      if isClosed() { return }
      do throws(BusError) {
        let more = try connection.step()
        if case .connecting = state, connection.isReady { becomeConnected(connection, isClosed) }
        if !more { return checkDeadline() }
      } catch {
        return lose(error)
      }
    }
    poll.wake()
  }

  private func checkDeadline() {
    guard case .connecting(let connection, let deadline) = state, MonotonicTime.now() >= deadline
    else {
      return
    }
    end(connection, .unavailable("\(address) did not welcome this process in time"))
  }

  private func becomeConnected(_ connection: BusConnection, _ isClosed: () -> Bool) {
    state = .connected(connection, since: .now())
    isAbsenceKnown = false
    for (_, observer) in observers where !isClosed() { observer.connected(connection) }
  }

  // MARK: Losing

  private func lose(_ error: BusError) {
    switch state {
    case .connecting(let connection, _):
      // With DynamicUser= the classic dbus-daemon hangs up only now (systemd#22737): absent, not lost.
      var reason = "\(address) refused this process"
      if case .disconnected(let errno) = error {
        reason += " (\(String(cString: strerror(errno))))"
      }
      end(connection, .unavailable(reason))
    case .connected(let connection, let since):
      backOff.connectionLasted(since.duration(to: .now()))
      end(connection, error)
    case .idle, .waiting, .absent, .closed: break
    }
  }

  private func end(_ connection: BusConnection, _ error: BusError) {
    if let watched = watched.take() { poll.forget(watched) }
    wait(error)
    connection.close(error)
    tellAbsence(error)
  }

  private func wait(_ error: BusError) {
    state = .waiting(until: .after(backOff.take()), error)
  }

  private func tellAbsence(_ error: BusError) {
    guard !isAbsenceKnown else { return }
    isAbsenceKnown = true
    for (_, observer) in observers { observer.disconnected(error) }
  }

  // MARK: Serving

  private func serve(_ isClosed: () -> Bool) {
    for request in held.takeAll() {
      if isClosed() {
        held.append(request)
        continue
      }
      switch request {
      case .observe(let id, let observer): add(id, observer)
      case .forget(let id): observers.removeAll { $0.id == id }
      case .performLater(let due, let body): delayed.append((due, body))
      case .perform(let body): perform(request, body)
      }
    }
  }

  /// Moves the requests whose time has come to those that are held.
  private func takeDue() {
    let now = MonotonicTime.now()
    held += delayed.filter { $0.due <= now }.map { .perform($0.body) }
    delayed.removeAll { $0.due <= now }
  }

  private func add(_ id: UInt64, _ observer: BusSessionObserver) {
    observers.append((id, observer))
    switch state {
    case .connected(let connection, _): observer.connected(connection)
    case .waiting(_, let error), .absent(let error): observer.disconnected(error)
    case .idle, .connecting, .closed: break
    }
  }

  private func perform(_ request: BusRequest, _ body: (Result<BusConnection, BusError>) -> Void) {
    switch state {
    case .connected(let connection, _): body(.success(connection))
    case .idle, .connecting: held.append(request)  // the verdict will come
    case .waiting(_, let error), .absent(let error): body(.failure(error))
    case .closed: body(.failure(.closed))
    }
  }

  // MARK: Resting

  /// Arranges to be called again.
  private func rest() {
    var deadline: MonotonicTime?
    switch state {
    case .connecting(let connection, let until):
      watch(connection)
      deadline = min(until, connection.deadline ?? until)
    case .connected(let connection, _):
      watch(connection)
      deadline = connection.deadline
    case .waiting(let until, _): deadline = until
    case .idle, .absent, .closed: break
    }
    poll.arm(at: ([deadline] + delayed.map(\.due)).compactMap { $0 }.min())
  }

  private func watch(_ connection: BusConnection) {
    guard let interest = connection.interest else {
      poll.wake()  // it ended between two steps: the next step says so
      return
    }
    poll.watch(interest, before: watched)
    watched = interest.descriptor
  }
}
