// SPDX-License-Identifier: Apache-2.0
import CLinux

// The queries of requests, and the signals that they follow.
extension BusConnection {
  // MARK: Queries

  /// Sends the query at the next step, or after the reply it awaits. Further attempts begin with the shortest delay.
  func queryAtOnce(_ entry: Entry) {
    entry.delay = options.firstDelay
    entry.due = MonotonicTime.now()
  }

  func send(_ call: BusCall, for entry: Entry) {
    guard let bus else { return }
    entry.call = call
    do throws(BusError) { try bus.send(call, context: entry, Self.replied) } catch {
      receive(.failure(error), for: entry)
    }
  }

  private func receive(_ reply: Result<[BusValue], BusError>, for entry: Entry) {
    // If the connection has ended, libsystemd answers for the service, and the next step reports the end.
    guard let bus, bus.isOpen, let call = entry.call else { return }
    entry.call = nil
    let next =
      switch reply {
      case .success(let values): entry.request.receive(.reply(values, to: call))
      case .failure(let error): entry.request.receive(.failure(error, of: call))
      }
    switch next {
    case .call(let next): send(next, for: entry)
    case .follow(let match):
      do throws(BusError) {
        try bus.match(match, context: entry, Self.signalled, installed: Self.installed)
      } catch { fail(entry, error) }
      entry.due = MonotonicTime.now()
    case .malformed: fail(entry, .malformed(call.subject))
    case .again:
      entry.due = min(entry.due, MonotonicTime.now().advanced(by: entry.delay))
      entry.delay = min(entry.delay * 2, options.longestDelay)
    case .done: break
    }
  }

  func fail(_ entry: Entry, _ error: BusError) {
    _ = entry.request.receive(.failure(error, of: nil))
  }

  // MARK: Signals

  /// Requests the signals, after the owner of the service's name and its changes. The bus handles requests in order, so
  /// the owner is known before the first signal.
  func receiveSignals(of entry: Entry, on bus: SDBus) {
    let (service, itself) = (entry.request.service.rawValue, BusService.bus)
    do throws(BusError) {
      try bus.match(
        BusMatch(
          "NameOwnerChanged", of: itself.path, itself.rawValue, itself, argument: service),
        context: entry, Self.ownerChanged, installed: Self.installed)
      try bus.send(
        BusCall("GetNameOwner", of: itself.path, itself.rawValue, itself, [service]),
        context: entry, Self.ownerChanged)
      for match in entry.request.matches {
        try bus.match(match, context: entry, Self.signalled, installed: Self.installed)
      }
    } catch { fail(entry, error) }
  }

  private func receive(signal: OpaquePointer, of bus: SDBus, for entry: Entry) {
    if entry.owner.isEmpty || bus.sender(of: signal) != entry.owner { return }
    let member = bus.member(of: signal)
    do throws(BusError) {
      switch entry.request.receive(.signal(try bus.values(of: signal, about: member))) {
      case .again: entry.due = MonotonicTime.now()
      case .malformed: fail(entry, .malformed(member))
      case .done, .call, .follow: break
      }
    } catch { fail(entry, error) }
  }

  /// Receives the name's owner from a reply, or from the signal that the name has another owner or none.
  private func receive(owner message: OpaquePointer, of bus: SDBus, for entry: Entry) {
    guard bus.sender(of: message) == BusService.bus.rawValue else { return }
    let values: [BusValue]
    switch bus.reply(message, about: "GetNameOwner") {
    case .success(let reply): values = reply
    case .failure(let error):
      // Signals are accepted only from a known owner.
      if bus.isOpen, !entry.request.matches.isEmpty, !error.name.hasSuffix(".NameHasNoOwner") {
        fail(entry, error)
      }
      return
    }
    guard case .string(let owner)? = values.last else { return }
    entry.owner = owner
    // Messages of the old owner may be outdated.
    if values.count == 3, !owner.isEmpty { queryAtOnce(entry) }
  }

  // MARK: Handlers that libsystemd calls

  private static let replied: clinux_sdbus_handler = { message, context, _ in
    handle(message, context) { connection, bus, entry, message in
      guard let call = entry.call else { return }
      connection.receive(bus.reply(message, about: call.subject), for: entry)
    }
  }

  private static let signalled: clinux_sdbus_handler = { message, context, _ in
    handle(message, context) { $0.receive(signal: $3, of: $1, for: $2) }
  }

  private static let ownerChanged: clinux_sdbus_handler = { message, context, _ in
    handle(message, context) { $0.receive(owner: $3, of: $1, for: $2) }
  }

  /// Receives the bus's reply to a match. Without it libsystemd would end the connection when the bus refuses a match.
  private static let installed: clinux_sdbus_handler = { message, context, _ in
    handle(message, context) { connection, bus, entry, message in
      if case .failure(let error) = bus.reply(message, about: "AddMatch"), bus.isOpen {
        connection.fail(entry, error)
      }
    }
  }

  private static func handle(
    _ message: OpaquePointer?, _ context: UnsafeMutableRawPointer?,
    _ body: (BusConnection, SDBus, Entry, OpaquePointer) -> Void
  ) -> Int32 {
    // The pointer has no reference: entries live as long as their connection, and that closes its bus.
    let entry = Unmanaged<Entry>.fromOpaque(context!).takeUnretainedValue()
    if let message, let bus = entry.connection.bus { body(entry.connection, bus, entry, message) }
    return 0
  }
}
