import CLinux
import Synchronization

/// One connection to a bus, as a `BusSession` lends it to those who ask something of the bus.
///
/// It has one owner at a time, the thread that is in `BusSession.process()`, and is not `Sendable` for that
/// reason: two threads in sd-bus at once end the process. Use it within the callback that it is given to.
/// Nothing here waits; every completion is called exactly once, at the latest when the connection ends.
package final class BusConnection {
  let library: BusLibrary
  /// sd-bus's object, to which we hold the one reference; `nil` once closed.
  private var bus: OpaquePointer?
  /// Who opened it; in a fork everything is refused before libsystemd is reached.
  private let process: pid_t
  /// Why it is closed, for those who ask afterwards.
  private var end: BusError?
  /// Every slot that is not unref'd yet. A callback lives at least as long as its slot, so that the
  /// pointer given to sd-bus is good whenever sd-bus uses it.
  private var callbacks: [UInt64: BusCallback] = [:]
  /// The unique names behind the well-known ones that signals are awaited from.
  private var owners: [String: BusNameOwner] = [:]

  // MARK: Opening and closing

  /// Begins to connect, and returns before it is known whether there is anybody.
  init(_ address: BusAddress, library: BusLibrary) throws(BusError) {
    self.library = library
    process = getpid()
    var bus: OpaquePointer?
    let result: Int32
    switch address {
    case .system: result = library.call(\.bus_open_system) { $0(&bus) }
    case .user: result = library.call(\.bus_open_user) { $0(&bus) }
    case .address(let text): result = Self.open(text, library, &bus)
    }
    guard result >= 0, let bus else {
      if let bus { _ = library.functions.bus_unref?(bus) }
      throw .unavailable("\(address) can't be reached (\(String(cString: strerror(-result))))")
    }
    self.bus = bus
  }

  private static func open(
    _ address: String, _ library: BusLibrary, _ bus: inout OpaquePointer?
  ) -> Int32 {
    var result = library.call(\.bus_new) { $0(&bus) }
    guard result >= 0, let bus else { return result }
    result = library.call(\.bus_set_address) { $0(bus, address) }
    guard result >= 0 else { return result }
    result = library.call(\.bus_set_bus_client) { $0(bus, 1) }
    guard result >= 0 else { return result }
    return library.call(\.bus_start) { $0(bus) }
  }

  deinit { close(.closed) }

  /// Ends it and tells all who wait for an answer. sd-bus first stops, so that nothing is sent any more;
  /// then the slots go, then the bus, which they refer to.
  func close(_ error: BusError) {
    guard let bus else { return }
    self.bus = nil
    end = error
    let ending = callbacks.sorted { $0.key < $1.key }.map(\.value)
    callbacks = [:]
    owners = [:]
    // In a fork the object is a copy that shares the parent's socket: it is left alone, and not freed.
    if getpid() == process {
      library.functions.bus_close?(bus)
      for callback in ending { release(callback) }
      _ = library.functions.bus_unref?(bus)
    }
    for callback in ending { callback.ended(error) }
  }

  private func release(_ callback: BusCallback) {
    if let slot = callback.slot.take() { _ = library.functions.bus_slot_unref?(slot) }
  }

  /// The bus, for those who may use it now.
  private func open() throws(BusError) -> OpaquePointer {
    guard getpid() == process else { throw .afterFork }
    guard let bus else { throw end ?? .closed }
    return bus
  }

  // MARK: The owner's loop

  /// Whether the bus has welcomed us: calls go out at once.
  var isReady: Bool {
    guard let bus = try? open() else { return false }
    return library.call(\.bus_is_ready) { $0(bus) } > 0
  }

  /// What to poll(2) for; it may change with everything that is done here.
  var interest: (descriptor: Int32, events: UInt32)? {
    guard let bus = try? open() else { return nil }
    let descriptor = library.call(\.bus_get_fd) { $0(bus) }
    let events = library.call(\.bus_get_events) { $0(bus) }
    guard descriptor >= 0, events >= 0 else { return nil }
    return (descriptor, UInt32(events))
  }

  /// When sd-bus wants to be called though nothing came; `nil` = never.
  var deadline: MonotonicTime? {
    guard let bus = try? open() else { return nil }
    var time: UInt64 = .max
    guard library.call(\.bus_get_timeout, { $0(bus, &time) }) >= 0, time != .max else { return nil }
    return MonotonicTime(microseconds: time)
  }

  /// Takes one step. False when there is nothing more to do for now; throws when the connection is lost.
  func step() throws(BusError) -> Bool {
    let bus = try open()
    let result = library.call(\.bus_process) { $0(bus, nil) }
    guard result >= 0 else { throw .disconnected(errno: -result) }
    return result > 0
  }

  // MARK: Calls

  /// Calls a method. The completion gets the reply's values, or why there are none; `timeout` is how long to
  /// wait for the reply, at least 1 µs, at most a year.
  package func call(
    _ method: BusMethod, arguments: [String] = [], timeout: Duration = .seconds(25),
    completion: @escaping @Sendable (Result<[BusValue], BusError>) -> Void
  ) {
    do throws(BusError) {
      try send(method, arguments, timeout, completion)
    } catch {
      completion(.failure(error))
    }
  }

  private func send(
    _ method: BusMethod, _ arguments: [String], _ timeout: Duration,
    _ completion: @escaping @Sendable (Result<[BusValue], BusError>) -> Void
  ) throws(BusError) {
    let bus = try open()
    let message = try method.newMessage(on: bus, library)
    // sd-bus holds a reference of its own while the message is queued.
    defer { _ = library.functions.bus_message_unref?(message) }
    try append(arguments, to: message)
    let microseconds = Self.microseconds(timeout)
    // Counted in whole microseconds as sd-bus counts, which is not to be sooner.
    let deadline = MonotonicTime(microseconds: MonotonicTime.now().microseconds + microseconds)
    let id = newID()
    let callback = BusCallback(
      message: { [weak self] reply in
        guard let self, self.forget(id) else { return }
        completion(self.result(of: reply, to: method, deadline: deadline))
      },
      ended: { completion(.failure($0)) })
    let result = library.call(\.bus_call_async) {
      $0(bus, &callback.slot, message, BusCallback.onMessage, callback.pointer, microseconds)
    }
    guard result >= 0 else { throw failure(result, "call \(method)") }
    callbacks[id] = callback
  }

  /// 1 µs to a year: 0 would be sd-bus's own default, and more could overflow in it.
  static func microseconds(_ timeout: Duration) -> UInt64 {
    UInt64(max(1, min(timeout, .seconds(365 * 86_400)).saturatedNanoseconds / 1000))
  }

  /// All that this package sends is text.
  private func append(_ arguments: [String], to message: OpaquePointer) throws(BusError) {
    for text in arguments {
      guard !text.utf8.contains(0) else {
        throw .invalidArgument("A string with a zero byte can't be sent over the bus.")
      }
      let result = library.call(\.bus_message_append_basic) {
        $0(message, CChar(bitPattern: UInt8(ascii: "s")), text)
      }
      guard result >= 0 else { throw failure(result, "send \"\(text)\"") }
    }
  }

  private func result(
    of reply: OpaquePointer, to method: BusMethod, deadline: MonotonicTime
  ) -> Result<[BusValue], BusError> {
    let reader = BusMessageReader(library: library, message: reply)
    guard let error = reader.error(in: method) else {
      return Result { () throws(BusError) in try reader.readAll() }
    }
    // sd-bus answers for a peer that is gone, and for one that is late.
    if let bus, library.call(\.bus_is_open, { $0(bus) }) <= 0 {
      return .failure(.disconnected(errno: ECONNRESET))
    }
    if case .call(_, _, _, ETIMEDOUT) = error, MonotonicTime.now() >= deadline {
      return .failure(.timedOut(method: method.description))
    }
    return .failure(error)
  }

  /// Reads one property.
  func property(
    _ name: String, of object: BusObject,
    completion: @escaping @Sendable (Result<BusValue, BusError>) -> Void
  ) {
    call(object.properties.method("Get"), arguments: [object.interface, name]) { reply in
      completion(
        reply.flatMap { values in
          guard values.count == 1, case .variant(let value) = values[0] else {
            return .failure(
              .malformedReply("The property \(name) of \(object) is not one variant."))
          }
          return .success(value)
        })
    }
  }

  /// Reads all properties of an object's interface in one answer.
  func properties(
    of object: BusObject,
    completion: @escaping @Sendable (Result<[String: BusValue], BusError>) -> Void
  ) {
    call(object.properties.method("GetAll"), arguments: [object.interface]) { reply in
      completion(
        reply.flatMap { values in
          guard values.count == 1, let properties = values[0].dictionary else {
            return .failure(.malformedReply("The properties of \(object) are not a dictionary."))
          }
          return .success(properties)
        })
    }
  }

  // MARK: Signals

  /// Listens to a signal until `cancel` or the end of the connection. What is read after that call was made is not older
  /// than the first signal.
  ///
  /// Only the owner of the sender's name is heard: any program may send any signal straight to another one, and the bus
  /// lets it through.
  ///
  /// - Parameter handler: Gets each signal, and why there will be none when the bus refuses.
  @discardableResult
  func match(
    _ rule: BusMatchRule, handler: @escaping @Sendable (Result<BusSignal, BusError>) -> Void
  ) -> BusMatch {
    if let name = rule.wellKnownSender { track(name) }
    let id = newID()
    let refused = { (error: BusError) in handler(.failure(error)) }
    do throws(BusError) {
      try addMatch(id, rule, refused) { [weak self] message in
        guard let self, self.isGenuine(message, rule) else { return }
        handler(BusMessageReader(library: self.library, message: message).signal())
      }
    } catch {
      refused(error)
    }
    return BusMatch(id: id)
  }

  /// Ends a match; does nothing for one of another connection.
  func cancel(_ match: BusMatch) {
    guard !forget(match.id) else { return }
    for name in owners.keys { owners[name]?.listeners[match.id] = nil }
  }

  private func addMatch(
    _ id: UInt64, _ rule: BusMatchRule, _ refused: @escaping (BusError) -> Void,
    _ handler: @escaping (OpaquePointer) -> Void
  ) throws(BusError) {
    let bus = try open()
    let text = try rule.text()
    let callback = BusCallback(
      message: handler,
      installed: { [library] reply in
        let reader = BusMessageReader(library: library, message: reply)
        if let error = reader.error(in: BusMethod.addMatch) { refused(error) }
      })
    let result = library.call(\.bus_add_match_async) {
      $0(
        bus, &callback.slot, text, BusCallback.onMessage, BusCallback.onInstalled,
        callback.pointer)
    }
    // 1 on some versions, 0 on others.
    guard result >= 0 else { throw failure(result, "listen to \(text)") }
    callbacks[id] = callback
  }

  // MARK: Who owns a name

  /// Calls `handler` whenever the name gets another owner: its service has started (again).
  @discardableResult
  func onNewOwner(
    of name: String, _ handler: @escaping @Sendable (BusConnection) -> Void
  ) -> BusMatch {
    track(name)
    let id = newID()
    owners[name]?.listeners[id] = handler
    return BusMatch(id: id)
  }

  /// Follows the owner of a name. The bus handles our requests in order, so the owner is known before the
  /// first signal of a match that is asked for after this.
  private func track(_ name: String) {
    guard owners[name] == nil, (try? open()) != nil else { return }
    owners[name] = BusNameOwner()
    let ignore = { (_: BusError) in }
    try? addMatch(newID(), .nameOwnerChanged(of: name), ignore) { [weak self] message in
      guard let self else { return }
      let signal = BusMessageReader(library: self.library, message: message).signal()
      guard case .success(let signal) = signal, signal.sender == BusObject.bus.destination else {
        return
      }
      guard signal.arguments.count == 3, case .string(let owner) = signal.arguments[2] else {
        return
      }
      self.owners[name]?.unique = owner
      if !owner.isEmpty { self.owners[name]?.tell(self) }
    }
    let callback = OwnerReply(connection: self, name: name)
    call(BusObject.bus.method("GetNameOwner"), arguments: [name]) { callback.received($0) }
  }

  /// Brings the answer back to the connection that asked.
  /// `@unchecked`: completions are called by the connection's owner only, while it works on the connection.
  private struct OwnerReply: @unchecked Sendable {
    weak var connection: BusConnection?
    let name: String
    func received(_ reply: Result<[BusValue], BusError>) {
      guard case .success(let values) = reply, case .string(let owner)? = values.first else {
        return
      }
      connection?.owners[name]?.unique = owner
    }
  }

  private func isGenuine(_ message: OpaquePointer, _ rule: BusMatchRule) -> Bool {
    guard let sender = library.functions.bus_message_get_sender?(message) else { return false }
    let expected = rule.wellKnownSender.map { owners[$0]?.unique } ?? rule.sender
    return String(cString: sender) == expected
  }

  // MARK: Slots

  /// Of all connections, so that a match is never taken for another connection's.
  private static let lastID = Atomic<UInt64>(0)

  private func newID() -> UInt64 {
    Self.lastID.add(1, ordering: .relaxed).newValue
  }

  /// Lets go of a slot; false when that has been done. sd-bus holds a reference while it calls back.
  private func forget(_ id: UInt64) -> Bool {
    guard let callback = callbacks.removeValue(forKey: id) else { return false }
    if getpid() == process { release(callback) }
    return true
  }

  private func failure(_ result: Int32, _ purpose: String) -> BusError {
    switch -result {
    case ECHILD: .afterFork
    case ENOTCONN, ECONNRESET, EPIPE, ESHUTDOWN: .disconnected(errno: -result)
    case EINVAL: .invalidArgument("libsystemd refuses to \(purpose): not a valid name or path.")
    default: .system(purpose, errno: -result)
    }
  }
}
