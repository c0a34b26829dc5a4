// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

package enum BusAddress: Sendable {
  /// The machine's bus, where PID 1 and logind are; `DBUS_SYSTEM_BUS_ADDRESS` overrides its address.
  case system
  /// The user's own bus, found by `DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`.
  case user
  /// Another bus, for example `unix:path=/run/test/bus`.
  case address(String)
}

/// A connection to a bus, run on the caller's thread, which sends queries and follows states.
///
/// Nothing here blocks: `start` only requests a connection, and `process` does what can be done at once. A lost
/// connection is made again, for ever, with delays from 0.1 s to 30 s. Handlers run inside `process`, on the thread
/// that calls it, which may be a different one each time, one at a time. In a forked child nothing happens.
///
/// The work is done in `CLinux/bus.c`; this type decides which thread may enter it.
package final class BusSession: Sendable {
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
    var stepsAtOnce: Int32 = 128

    package init() {}
  }

  /// A query, or a state that is followed.
  package struct Item: Sendable {
    fileprivate let number: Int32
  }

  /// Receives the reply or an error, and returns whether that settles the query; otherwise it is sent again.
  package typealias Handler = @Sendable (Result<BusAnswer, BusError>) -> Bool

  private struct Shared {
    var isStarted = false
    var isClosed = false
    /// Whether a thread is in `bus`. A thread that finds this false sets it, and then owns `bus`.
    var hasTurn = false
    /// The queries that the next turn sends.
    var asked: [Item] = []
  }

  private let shared = Mutex(Shared())
  private let items = Items()
  /// Used only by the thread that has set `hasTurn`, except for functions that are safe on any thread; the mutex orders
  /// the turns. Freed by the deinit.
  nonisolated(unsafe) private let bus: OpaquePointer

  package init(_ address: BusAddress, options: Options = Options()) {
    func microseconds(_ time: Duration) -> UInt64 {
      UInt64(max(1000, time.saturatedNanoseconds)) / 1000
    }
    // It keeps only what it has copied, and the items, which this object retains as long.
    let listener = clinux_bus_listener(
      context: Unmanaged.passUnretained(items).toOpaque(),
      is_wanted: { Items.at($0!).all[Int($1)].isWanted() },
      hear: { Items.at($0!).all[Int($1)].hear($2!.pointee) })
    var isUserBus = false
    var path: String?
    switch address {
    case .system: break
    case .user: isUserBus = true
    case .address(let text): path = text
    }
    var made = clinux_bus_options(
      first_delay: microseconds(options.firstDelay),
      longest_delay: microseconds(options.longestDelay),
      connect_timeout: microseconds(options.connectTimeout),
      call_timeout: microseconds(options.callTimeout), steps: options.stepsAtOnce)
    bus = clinux_bus_make(&made, options.library, path, isUserBus, listener)
  }

  deinit { clinux_bus_free(bus) }

  // MARK: Before it starts

  /// Sends a query, or follows a state, from the start on.
  ///
  /// - Parameter isWanted: Whether a reply is still needed; called before each attempt.
  @discardableResult
  package func follow(
    _ matter: BusMatter, while isWanted: @escaping @Sendable () -> Bool = { true },
    _ handler: @escaping Handler
  ) -> Item {
    precondition(!shared.withLock(\.isStarted))
    items.all.append(Items.Entry(matter: matter, isWanted: isWanted, handler: handler))
    return Item(number: clinux_bus_add(bus, matter.code, matter.argument, Journal.programName))
  }

  // MARK: For the owner's loop

  /// A descriptor that is readable when `process` should be called. It is the same from `init` to `deinit`; -1 when
  /// there was no descriptor left. It is level-triggered: poll it, but do not read it.
  package var fileDescriptor: Int32 { clinux_bus_descriptor(bus) }

  /// Requests the connection, and returns at once. Calls of `process` make it.
  package func start() {
    shared.withLock { $0.isStarted = true }
    clinux_bus_wake(bus)
  }

  /// Does what can be done now, and calls handlers. It does not block; it does nothing when another thread, or a caller
  /// further up on this one, is in it.
  ///
  /// The first call loads libsystemd (dlopen(3)).
  package func process() {
    let asked = shared.withLock { shared -> [Item]? in
      guard shared.isStarted, !shared.hasTurn, !shared.isClosed else { return nil }
      shared.hasTurn = true
      defer { shared.asked = [] }
      return shared.asked
    }
    guard let asked else { return }
    for item in asked { clinux_bus_ask(bus, item.number) }
    clinux_bus_process(bus)
    // The thread that closes keeps the turn.
    let isClosed = shared.withLock { shared in
      shared.hasTurn = shared.isClosed
      return shared.isClosed
    }
    if isClosed { clinux_bus_close(bus) }
  }

  // MARK: From any thread

  /// Sends a query now, or again as soon as the pending reply has arrived. Without a connection a query that is sent
  /// anyway on each connection waits for that; one for the unit's job is an error.
  package func ask(_ item: Item) {
    shared.withLock { $0.asked.append(item) }
    clinux_bus_wake(bus)
  }

  /// Ends the connection permanently; no handler is called after that. Further calls have no effect. If another thread
  /// is inside `process`, the connection is ended there, as soon as its handler returns.
  package func close() {
    clinux_bus_end(bus)
    let isMine = shared.withLock { shared in
      shared.isClosed = true
      defer { shared.hasTurn = true }
      return !shared.hasTurn
    }
    if isMine { clinux_bus_close(bus) }
  }

  package var isClosed: Bool { shared.withLock(\.isClosed) }

  /// `@unchecked`: changed only before the start, then read by the thread that has the turn.
  private final class Items: @unchecked Sendable {
    struct Entry {
      let matter: BusMatter
      let isWanted: @Sendable () -> Bool
      let handler: Handler

      func hear(_ word: clinux_bus_word) -> Bool {
        handler(
          word.outcome == CLINUX_BUS_ANSWERED
            ? .success(BusAnswer(word)) : .failure(BusError(word, about: matter)))
      }
    }

    var all: [Entry] = []

    /// Returns the object for the pointer that the session passed to C, which retains the object.
    static func at(_ context: UnsafeMutableRawPointer) -> Items {
      Unmanaged<Items>.fromOpaque(context).takeUnretainedValue()
    }
  }
}
