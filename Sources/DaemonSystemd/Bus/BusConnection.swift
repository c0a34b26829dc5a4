// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A connection to a bus that is kept up, and the requests that are sent over it.
///
/// Nothing here blocks: `start` only requests a connection, and `process` does what can be done at once. A lost
/// connection is made again, for ever, with delays from 0.1 s to 30 s. One thread at a time may use it. In a forked
/// child nothing happens.
package final class BusConnection {
  package struct Options: Sendable {
    /// The delay before the first attempt to connect, or to send a query, again; 0.1 s. It doubles with each attempt.
    package var firstDelay = Duration.milliseconds(100)
    /// The longest delay between two attempts; 30 s.
    package var longestDelay = Duration.seconds(30)
    /// How long a bus may take to accept the connection; 25 s, since activation of the bus itself takes time.
    package var connectTimeout = Duration.seconds(25)
    /// How long a reply may take; 25 s.
    package var callTimeout = Duration.seconds(25)
    /// The library to load with dlopen(3). Any libsystemd since 240 has this name.
    package var library = "libsystemd.so.0"
    /// The number of messages handled in one `process`, so that many signals leave time for other work.
    var stepsAtOnce = 128
    var now: @Sendable () -> MonotonicTime = { .now() }

    package init() {}
  }

  private enum State {
    /// Next: connecting, lost or absent.
    case new
    /// Next: connected, or lost when it failed or the time is over.
    case connecting(until: MonotonicTime)
    /// Next: lost.
    case connected(since: MonotonicTime)
    /// Next: connecting, at that time.
    case lost(until: MonotonicTime)
    /// There is no libsystemd, nor will there be.
    case absent
    case closed
  }

  /// The query of a request.
  private enum Phase {
    /// There is an answer, or no connection. Next: calling.
    case idle
    /// A call awaits its reply. Next: idle, waiting, or calling again.
    case calling
    /// Next: calling, at that time, or idle when the connection is lost.
    case waiting(until: MonotonicTime)
  }

  private final class Entry {
    let request: BusRequest
    var phase = Phase.idle
    /// Whether the reply of the call under way will be outdated.
    var isOutdated = false
    /// Whether the query is to be sent, on demand.
    var isDemanded = false
    /// The delay before the next attempt.
    var delay = Duration.zero
    var call: SDBus.Slot?
    var matches: [SDBus.Slot] = []

    init(_ request: BusRequest) { self.request = request }

    var isCalling: Bool { if case .calling = phase { true } else { false } }
  }

  /// The process that has a service's name; empty while there is none, or it is not known yet.
  private struct Owner {
    var name = ""
    var slots: [SDBus.Slot] = []
  }

  private let address: BusAddress
  private let options: Options
  private let entries: [Entry]
  private var functions: clinux_sdbus?
  /// Exists while connecting and connected.
  private var bus: SDBus?
  private var state = State.new
  private var owners: [BusService: Owner] = [:]
  /// The delay before the attempt after the next loss.
  private var delay: Duration
  /// Why there is no connection; `nil` while there is one, and before the first attempt.
  private var absence: BusError?
  private var poll: BusPoll?
  private let owner = getpid()

  package init(_ address: BusAddress, _ requests: [BusRequest], options: Options = Options()) {
    var options = options
    // Without a delay it would never rest.
    options.firstDelay = max(options.firstDelay, .milliseconds(1))
    options.longestDelay = max(options.longestDelay, options.firstDelay)
    self.address = address
    self.options = options
    entries = requests.map { Entry($0) }
    delay = options.firstDelay
  }

  deinit { close() }

  private var isForked: Bool { getpid() != owner }

  // MARK: For the owner's loop

  /// A descriptor that is readable when `process` should be called: it is to be polled, but not read. The same from
  /// `start` to `close`, otherwise -1.
  package var fileDescriptor: Int32 { poll?.descriptor.rawValue ?? -1 }

  /// The time at which `process` should be called even if the descriptor is not readable.
  package private(set) var deadline = MonotonicTime.distantFuture

  /// Requests the connection, which calls of `process` make.
  package func start() throws(SystemdError) {
    poll = try BusPoll()
    deadline = options.now()
  }

  /// Sends the queries that are sent on demand, in the next `process`; as soon as there is a connection, if one is
  /// being made.
  package func sendOnDemand() {
    if isForked { return }
    for entry in entries where entry.request.isOnDemand { entry.isDemanded = true }
    poll?.wake()
  }

  /// Does what can be done now, and calls the requests' closures. The first call loads libsystemd.
  package func process() {
    guard !isForked, let poll else { return }
    poll.drain()
    switch state {
    case .new: connect()
    case .lost(let time) where time <= options.now(): connect()
    default: break
    }
    let hasMore = advance()
    let now = options.now()
    for entry in entries {
      if case .waiting(let time) = entry.phase, time <= now { query(entry) }
      if entry.isDemanded { answerDemand(entry) }
    }
    let isWatched = bus.map { poll.watch($0.socket, events: $0.events) } ?? true
    // Where the connection has ended between two steps, the next step tells.
    deadline = hasMore || !isWatched ? now : nextDeadline
  }

  /// Ends the connection permanently.
  package func close() {
    // The descriptors of a fork are the parent's too.
    if isForked { return }
    disconnect()
    state = .closed
    deadline = .distantFuture
    poll = nil
  }

  private var nextDeadline: MonotonicTime {
    var next = bus?.deadline ?? .distantFuture
    switch state {
    case .connecting(let time), .lost(let time): next = min(next, time)
    default: break
    }
    for entry in entries {
      if case .waiting(let time) = entry.phase { next = min(next, time) }
    }
    return next
  }

  // MARK: Connecting

  private func connect() {
    do throws(BusError) {
      if functions == nil { functions = try SDBus.load(options.library) }
      if let functions { bus = try SDBus(address, functions) }
      state = .connecting(until: options.now().advanced(by: options.connectTimeout))
    } catch { goWithout(error) }
  }

  /// Works until there is nothing more to do for now. Returns whether there is, and others must have a turn.
  private func advance() -> Bool {
    for _ in 0..<options.stepsAtOnce {
      guard let bus else { return false }
      let result = bus.process()
      if result < 0 {
        lose(-result)
        return false
      }
      if case .connecting(let limit) = state {
        if bus.isReady {
          begin(on: bus)
        } else if result == 0, limit <= options.now() {
          lose(ETIMEDOUT)
        }
      }
      if result == 0 { return false }
    }
    return true
  }

  private func begin(on bus: SDBus) {
    state = .connected(since: options.now())
    absence = nil
    for entry in entries {
      receiveSignals(of: entry, on: bus)
      if !entry.request.isOnDemand { queryAtOnce(entry) }
    }
  }

  private func lose(_ error: Int32) {
    let loss: BusError
    if case .connected(let since) = state {
      // A bus that accepts and hangs up again is tried less and less often.
      if since.duration(to: options.now()) > delay { delay = options.firstDelay }
      loss = BusError("The connection to the bus is lost", errno: error, .lost)
    } else if error == ETIMEDOUT {
      loss = BusError(
        .unavailable, "There is no bus: \(address.name) did not accept the connection in time.")
    } else {
      // With DynamicUser= the classic dbus-daemon hangs up only now (systemd#22737).
      loss = BusError(
        "There is no bus: \(address.name) refused this process", errno: error, .unavailable)
    }
    disconnect()
    goWithout(loss)
  }

  /// libsystemd first stops, so that nothing is sent any more; then the slots go, then the bus, which they refer to.
  private func disconnect() {
    guard let bus else { return }
    poll?.stopWatching()
    bus.close()
    owners = [:]
    for entry in entries { (entry.call, entry.matches) = (nil, []) }
    self.bus = nil
  }

  private func goWithout(_ error: BusError) {
    let isNews = absence == nil
    absence = error
    if functions == nil {
      state = .absent
    } else {
      state = .lost(until: options.now().advanced(by: delay))
      delay = min(delay * 2, options.longestDelay)
    }
    for entry in entries {
      let isAwaited = entry.isCalling || entry.isDemanded
      (entry.phase, entry.isOutdated, entry.isDemanded) = (.idle, false, false)
      if entry.request.isOnDemand ? isAwaited : isNews { entry.request.failure(error) }
    }
  }

  // MARK: Queries

  private func answerDemand(_ entry: Entry) {
    if case .connected = state {
      entry.isDemanded = false
      queryAtOnce(entry)
    } else if let absence {
      entry.isDemanded = false
      entry.request.failure(absence)
    }
  }

  /// As `query`; the next attempts begin with the shortest delay.
  private func queryAtOnce(_ entry: Entry) {
    entry.delay = options.firstDelay
    query(entry)
  }

  /// Sends the query; again after its reply, if it awaits one.
  private func query(_ entry: Entry) {
    if entry.isCalling {
      entry.isOutdated = true
    } else if case .connected = state {
      send(entry.request.query(), for: entry)
    }
  }

  private func send(_ call: BusCall, for entry: Entry) {
    guard let bus else { return }
    entry.phase = .calling
    do throws(BusError) {
      entry.call = try bus.send(call, timeout: options.callTimeout) {
        [unowned self, unowned entry] in
        receive(bus.reply($0, to: call), to: call, for: entry)
      }
    } catch { receive(.failure(error), to: call, for: entry) }
  }

  private func receive(_ reply: BusRequest.Reply, to call: BusCall, for entry: Entry) {
    // Where the connection has ended, libsystemd answers for the service, and the next step tells.
    guard let bus, bus.isOpen else { return }
    entry.call = nil
    entry.phase = .idle
    switch entry.request.reply(reply, call) {
    case .call(let next): return send(next, for: entry)
    case .malformed: entry.request.failure(.malformed(call.subject))
    case .again:
      entry.phase = .waiting(until: options.now().advanced(by: entry.delay))
      entry.delay = min(entry.delay * 2, options.longestDelay)
    case .done: break
    }
    if entry.isOutdated {
      entry.isOutdated = false
      query(entry)
    }
  }

  // MARK: Signals

  private func receiveSignals(of entry: Entry, on bus: SDBus) {
    let request = entry.request
    followOwner(of: request.service, on: bus)
    for match in request.matches {
      do throws(BusError) {
        let slot = try bus.match(match, of: request.service) {
          [unowned self, unowned entry, unowned bus] message in
          receive(message, on: bus, for: entry)
        } installed: { [unowned bus] message in
          let call = BusCall("AddMatch", of: "/", "", .bus)
          if case .failure(let error) = bus.reply(message, to: call), bus.isOpen {
            request.failure(error)
          }
        }
        entry.matches.append(slot)
      } catch { request.failure(error) }
    }
  }

  private func receive(_ signal: OpaquePointer, on bus: SDBus, for entry: Entry) {
    let member = bus.member(of: signal)
    guard let owner = owners[entry.request.service]?.name, !owner.isEmpty,
      bus.sender(of: signal) == owner
    else { return }
    do throws(BusError) {
      switch entry.request.signal(member, try bus.values(of: signal, about: member)) {
      case .again: query(entry)
      case .malformed: entry.request.failure(.malformed(member))
      case .done, .call: break
      }
    } catch { entry.request.failure(error) }
  }

  /// Follows which process has the name of a service. The bus handles requests in order, so the owner is known before
  /// the first signal of a match that is requested after this.
  private func followOwner(of service: BusService, on bus: SDBus) {
    guard owners[service] == nil else { return }
    owners[service] = Owner()
    let changes = BusMatch(
      "NameOwnerChanged", of: BusService.bus.path, BusService.bus.rawValue,
      argument: service.rawValue)
    let match = try? bus.match(changes, of: .bus) { [unowned self, unowned bus] message in
      guard bus.sender(of: message) == BusService.bus.rawValue,
        let values = try? bus.values(of: message, about: changes.member), values.count == 3,
        case .string(let owner) = values[2]
      else { return }
      owners[service]?.name = owner
      if owner.isEmpty { return }
      // What the old one has sent may be outdated.
      for entry in entries where entry.request.service == service && !entry.request.isOnDemand {
        queryAtOnce(entry)
      }
    } installed: { _ in
    }
    let query = BusCall(
      "GetNameOwner", of: BusService.bus.path, BusService.bus.rawValue, .bus, [service.rawValue])
    let call = try? bus.send(query, timeout: options.callTimeout) { [unowned self, unowned bus] in
      if case .success(let values) = bus.reply($0, to: query),
        case .string(let owner)? = values.only
      {
        owners[service]?.name = owner
      }
    }
    owners[service]?.slots = [match, call].compactMap { $0 }
  }
}

/// A descriptor that is readable when a socket is ready, or after `wake`.
private final class BusPoll {
  let descriptor: OwnedDescriptor
  private let waker: OwnedDescriptor
  private var socket: Int32?

  init() throws(SystemdError) {
    let waker = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard waker >= 0 else {
      throw .system("create the waker of a bus connection", errno: clinux_errno())
    }
    self.waker = OwnedDescriptor(owning: waker)
    let descriptor = epoll_create1(Int32(bitPattern: UInt32(EPOLL_CLOEXEC)))
    guard descriptor >= 0 else {
      throw .system("create the poll of a bus connection", errno: clinux_errno())
    }
    self.descriptor = OwnedDescriptor(owning: descriptor)
    guard control(EPOLL_CTL_ADD, waker, POLLIN) else {
      throw .system("poll the waker of a bus connection", errno: clinux_errno())
    }
  }

  /// Makes the descriptor readable, from any thread, until `drain`.
  func wake() { eventfd_write(waker.rawValue, 1) }

  func drain() {
    var count: UInt64 = 0
    eventfd_read(waker.rawValue, &count)
  }

  /// Waits for events of a socket, which replaces the one before. libsystemd may close a socket and open another one
  /// under the same number: so the kernel is asked which it has. Returns false where the connection has ended.
  func watch(_ socket: Int32, events: Int32) -> Bool {
    if let old = self.socket, old != socket { stopWatching() }
    guard socket >= 0, events >= 0 else { return false }
    self.socket = socket
    return control(EPOLL_CTL_MOD, socket, events) || control(EPOLL_CTL_ADD, socket, events)
  }

  func stopWatching() {
    if let socket { _ = control(EPOLL_CTL_DEL, socket, 0) }
    socket = nil
  }

  private func control(_ operation: Int32, _ number: Int32, _ events: Int32) -> Bool {
    // POLLIN and POLLOUT have the same values as EPOLLIN and EPOLLOUT.
    var event = epoll_event(events: UInt32(events), data: epoll_data_t(fd: number))
    return epoll_ctl(descriptor.rawValue, operation, number, &event) == 0
  }
}
