// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A connection to a bus that is kept up, and the requests that are sent over it.
///
/// Nothing here blocks: `start` only requests a connection, and `process` does what can be done at once. A lost
/// connection is made again, for ever, with delays that grow. One thread at a time may use it.
package final class BusConnection {
  package struct Options: Sendable {
    /// The delay before the first attempt to connect, or to send a query, again; 0.1 s. It doubles with each attempt.
    package var firstDelay = Duration.milliseconds(100)
    /// The longest delay between two attempts; 30 s.
    package var longestDelay = Duration.seconds(30)
    /// The library to load with dlopen(3). Any libsystemd since 240 has this name.
    package var library = "libsystemd.so.0"
    /// The number of messages handled in one `process`, so that many signals leave time for other work.
    var stepsAtOnce = 128

    package init() {}
  }

  private enum State {
    /// No connection until this time, when one is requested; never one without libsystemd. Next: connecting, or
    /// disconnected.
    case disconnected(until: MonotonicTime)
    /// Next: connected, or disconnected after a failure. libsystemd limits how long connecting takes.
    case connecting
    /// Next: disconnected.
    case connected(since: MonotonicTime)
  }

  /// A request, and the state of its query.
  final class Entry {
    let request: BusRequest
    unowned let connection: BusConnection
    /// The call that awaits its reply.
    var call: BusCall?
    /// The time at which the query is sent, once there is a connection and no call.
    var due = MonotonicTime.distantFuture
    /// The delay before the next attempt.
    var delay = Duration.zero
    /// The unique name of the process that owns the service's name; empty while there is no owner, or it is unknown.
    var owner = ""

    init(_ request: BusRequest, _ connection: BusConnection) {
      (self.request, self.connection) = (request, connection)
    }
  }

  private let address: BusAddress
  let options: Options
  private var entries: [Entry] = []
  private var functions: clinux_sdbus?
  /// Exists while connecting and connected.
  private(set) var bus: SDBus?
  private var state = State.disconnected(until: .distantFuture)
  /// The delay before the attempt after the next loss.
  private var delay: Duration
  /// Why there is no connection; `nil` while there is one, and before the first attempt.
  private var absence: BusError?
  /// An epoll(7) descriptor with the bus's socket, from `start` to `close`.
  private var poll: OwnedDescriptor?
  private var polledSocket: Int32 = -1

  package init(_ address: BusAddress, _ requests: [BusRequest], options: Options = Options()) {
    var options = options
    // Without a delay it would never rest.
    options.firstDelay = max(options.firstDelay, .milliseconds(1))
    options.longestDelay = max(options.longestDelay, options.firstDelay)
    self.address = address
    self.options = options
    delay = options.firstDelay
    entries = requests.map { Entry($0, self) }
  }

  deinit { close() }

  // MARK: For the owner's loop

  /// A descriptor that is readable when `process` should be called: it is to be polled, but not read. The same from
  /// `start` to `close`, otherwise -1.
  package var fileDescriptor: Int32 { poll?.rawValue ?? -1 }

  /// The time at which `process` should be called even if the descriptor is not readable.
  package private(set) var deadline = MonotonicTime.distantFuture

  /// Requests the connection, which calls of `process` make.
  package func start() throws(SystemdError) {
    let number = epoll_create1(Int32(bitPattern: UInt32(EPOLL_CLOEXEC)))
    guard number >= 0 else {
      throw .system(purpose: "create the poll of a bus connection", errno: clinux_errno())
    }
    poll = OwnedDescriptor(owning: number)
    deadline = MonotonicTime.now()
    state = .disconnected(until: deadline)
  }

  /// Has the queries on demand sent as soon as there is a connection. Without one, it tries to connect now.
  package func sendOnDemand() {
    if poll == nil { return }
    deadline = MonotonicTime.now()
    if case .disconnected = state, functions != nil { state = .disconnected(until: deadline) }
    for entry in entries where entry.request.isOnDemand { entry.due = deadline }
  }

  /// Does what can be done now, and calls the requests' closures. The first call loads libsystemd.
  package func process() {
    if poll == nil { return }
    if case .disconnected(let time) = state, time <= MonotonicTime.now() { connect() }
    let hasMore = advance()
    let now = MonotonicTime.now()
    for entry in entries where entry.due <= now && entry.call == nil {
      switch state {
      case .connected:
        entry.due = .distantFuture
        send(entry.request.query(), for: entry)
      case .connecting: break
      case .disconnected:
        guard let absence else { break }
        entry.due = .distantFuture
        fail(entry, absence)
      }
    }
    // If the connection has ended between two steps, the next step reports it.
    deadline = hasMore || !pollSocket() ? now : nextDeadline
  }

  /// Ends the connection permanently.
  package func close() {
    disconnect()
    poll = nil
    deadline = .distantFuture
  }

  private var nextDeadline: MonotonicTime {
    let next = bus?.deadline ?? .distantFuture
    switch state {
    case .disconnected(let time): return time
    case .connecting: return next
    case .connected: return entries.filter { $0.call == nil }.reduce(next) { min($0, $1.due) }
    }
  }

  /// Polls the bus's socket, by epoll_ctl(2) each time: libsystemd may have opened another under the same number.
  /// Returns false if the connection has ended. A connection that can't be polled is closed, and made again later.
  private func pollSocket() -> Bool {
    guard let bus else { return true }
    let (socket, events) = (bus.socket, bus.events)
    if socket != polledSocket { stopPolling() }
    guard socket >= 0, events >= 0 else { return false }
    polledSocket = socket
    if control(EPOLL_CTL_MOD, events) || control(EPOLL_CTL_ADD, events) { return true }
    let error = BusError(
      "The connection to the bus can't be polled", errno: clinux_errno(), .unavailable)
    disconnect()
    goWithout(error)
    return true
  }

  private func stopPolling() {
    if polledSocket >= 0 { _ = control(EPOLL_CTL_DEL, 0) }
    polledSocket = -1
  }

  private func control(_ operation: Int32, _ events: Int32) -> Bool {
    // POLLIN and POLLOUT have the same values as EPOLLIN and EPOLLOUT.
    var event = epoll_event(events: UInt32(events), data: epoll_data_t(fd: polledSocket))
    return epoll_ctl(fileDescriptor, operation, polledSocket, &event) == 0
  }

  // MARK: Connecting

  private func connect() {
    do throws(BusError) {
      if functions == nil { functions = try SDBus.load(options.library) }
      if let functions { bus = try SDBus(address, functions) }
      state = .connecting
    } catch { goWithout(error) }
  }

  /// Does steps until nothing is left to do for now, up to a limit. Returns true at the limit.
  private func advance() -> Bool {
    for _ in 0..<options.stepsAtOnce {
      guard let bus else { return false }
      let result = bus.process()
      if result < 0 { lose(-result) }
      if case .connecting = state, bus.isReady { begin(on: bus) }
      if result <= 0 { return false }
    }
    return true
  }

  private func begin(on bus: SDBus) {
    state = .connected(since: MonotonicTime.now())
    absence = nil
    for entry in entries where !entry.request.isOnDemand {
      receiveSignals(of: entry, on: bus)
      queryAtOnce(entry)
    }
  }

  private func lose(_ error: Int32) {
    var problem = "The connection to the bus is lost"
    if case .connected(let since) = state {
      // A bus that accepts and hangs up again is tried less and less often.
      if since.duration(to: MonotonicTime.now()) > delay { delay = options.firstDelay }
    } else {
      // With DynamicUser= the classic dbus-daemon hangs up only now (systemd#22737).
      problem = "There is no bus: \(address.name) refused this process"
    }
    disconnect()
    goWithout(BusError(problem, errno: error, .unavailable))
  }

  private func disconnect() {
    stopPolling()
    bus = nil
    state = .disconnected(until: .distantFuture)
  }

  private func goWithout(_ error: BusError) {
    let isNew = absence == nil
    absence = error
    if functions == nil {
      state = .disconnected(until: .distantFuture)
    } else {
      state = .disconnected(until: MonotonicTime.now().advanced(by: delay))
      delay = min(delay * 2, options.longestDelay)
    }
    for entry in entries {
      let isAwaited = entry.call != nil || entry.due < .distantFuture
      (entry.call, entry.due, entry.owner) = (nil, .distantFuture, "")
      if entry.request.isOnDemand ? isAwaited : isNew { fail(entry, error) }
    }
  }
}
