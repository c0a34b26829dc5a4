// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

package enum BusAddress: Sendable {
  /// The machine's bus, where PID 1 and logind are; `DBUS_SYSTEM_BUS_ADDRESS` overrides its address.
  case system
  /// The user's own bus, found by `DBUS_SESSION_BUS_ADDRESS` or `XDG_RUNTIME_DIR`.
  case user
  /// Any other, for example `unix:path=/run/test/bus`.
  case address(String)
}

/// Keeps a connection to a bus up, on a thread of yours, and asks and follows what it is told to.
///
/// Nothing here waits: `start` only asks for a connection, and `process` does what can be done at once. A lost
/// connection is made again, after 0.1 s at first and 30 s at last, for ever. Handlers run inside `process`, on the
/// thread that calls it, which may be another one each time, one at a time. In a fork nothing happens.
///
/// The work is in `CLinux/bus.c`; here is who may be in it.
package final class BusSession: Sendable {
  package struct Options: Sendable {
    /// Before the first attempt to connect again, or to ask again; 0.1 s. It doubles with each attempt.
    package var firstDelay = Duration.milliseconds(100)
    /// The longest delay between two attempts; 30 s.
    package var longestDelay = Duration.seconds(30)
    /// How long a bus may take to welcome us; 25 s, since activation of the bus itself takes time.
    package var connectTimeout = Duration.seconds(25)
    /// How long an answer may take; 25 s.
    package var callTimeout = Duration.seconds(25)
    /// The library to load, by dlopen(3)'s rules. Any libsystemd since 240 has this name.
    package var library = "libsystemd.so.0"
    /// Messages handled in one `process`, so that a storm of signals leaves room for other work.
    var stepsAtOnce: Int32 = 128

    package init() {}
  }

  /// Something that is asked or followed.
  package struct Item: Sendable {
    fileprivate let number: Int32
  }

  /// Gets the answer, or why there is none; returns whether that settles the question, which is asked again otherwise.
  package typealias Handler = @Sendable (Result<BusAnswer, BusError>) -> Bool

  private struct Shared {
    var isStarted = false
    var isClosed = false
    /// Whether a thread is in `bus`. Who finds this false sets it, and then owns it.
    var hasTurn = false
    /// What the next turn asks.
    var asked: [Item] = []
  }

  private let shared = Mutex(Shared())
  private let items = Items()
  /// Touched only by the thread that has set `hasTurn`, but for what is made for any; the mutex orders one turn after
  /// the other. Freed by the deinit.
  nonisolated(unsafe) private let bus: OpaquePointer

  package init(_ address: BusAddress, options: Options = Options()) {
    func microseconds(_ time: Duration) -> UInt64 {
      UInt64(max(1000, time.saturatedNanoseconds)) / 1000
    }
    // It holds on to no more than it has copied, and to the items, which this object holds as long.
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

  /// Asks or follows from the start on.
  ///
  /// - Parameter isWanted: Whether an answer to the question is still of use; called before each attempt.
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

  /// Readable when `process` should be called; the same number from `init` to the end of this object, -1
  /// when there was no descriptor left. Level-triggered; poll it, never read it.
  package var fileDescriptor: Int32 { clinux_bus_descriptor(bus) }

  /// Asks for the connection. Returns at once; what comes of it is known after some `process`.
  package func start() {
    shared.withLock { $0.isStarted = true }
    clinux_bus_wake(bus)
  }

  /// Does what can be done now, and calls handlers. Never waits; does nothing when another thread, or a
  /// caller further up on this one, is in it.
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
    // Who closes keeps the turn.
    let isClosed = shared.withLock { shared in
      shared.hasTurn = shared.isClosed
      return shared.isClosed
    }
    if isClosed { clinux_bus_close(bus) }
  }

  // MARK: From any thread

  /// Asks now, or again as soon as the answer that is awaited has come. While there is no connection, one that is
  /// followed or asked anyway waits for that; a unit's job is an error then.
  package func ask(_ item: Item) {
    shared.withLock { $0.asked.append(item) }
    clinux_bus_wake(bus)
  }

  /// Ends the connection for good; no handler is called after that. Idempotent; if another thread is inside `process`,
  /// the ending is done there, as soon as its handler returns.
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

  /// `@unchecked`: changed before the start alone, read by the thread that has the turn.
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

    /// The object whose pointer the session has given away, and which it holds.
    static func at(_ context: UnsafeMutableRawPointer) -> Items {
      Unmanaged<Items>.fromOpaque(context).takeUnretainedValue()
    }
  }
}
