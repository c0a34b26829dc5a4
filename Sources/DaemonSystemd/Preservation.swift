// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Descriptors and bytes, by name, that the service manager keeps between two runs of the service.
///
/// ```swift
/// let preservation = try Preservation()
/// let http = try preservation.preserved(named: "http", as: .listeningStream)
/// for name in preservation.names(prefix: "c") {
///   let peer = try preservation.preserved(named: name, as: .stream)
///   if let peer { resume(peer, name) }
/// }
/// let state = try preservation.preservedBytes(named: "state")
/// if let state { restore(state) }
/// try preservation.forget(named: "state")  // else a crash brings it back
/// try preservation.closeUnknown()          // what another version has left
/// // … once a connection has lasted a second, so that a crash keeps it too:
/// try preservation.preserve(peer.rawValue, named: "c17")
/// // … at the end, and only then exit:
/// try preservation.preserve(bytes, named: "state")
/// try preservation.barrier()
/// ```
///
/// It owns the descriptors that were passed to this process (sd_listen_fds(3)), and can store others
/// (`FileDescriptorStoreMax=`, systemd 219). Do not call shutdown(2) on a listening socket: the manager has it open too.
///
/// There may be no store: without a service manager, without `FileDescriptorStoreMax=`, and with systemd before 254,
/// which does not announce it. Then ``limit`` is 0, nothing was preserved, and requests to preserve have no effect.
/// Sockets of socket units are passed all the same. The store survives a restart of the service and a crash; it survives
/// a stop only if the unit has `FileDescriptorStorePreserve=yes` (254).
///
/// Give each descriptor a unique, permanent name: the manager removes by name, and its order is unspecified. Preserve
/// long-lived connections, not every short one: each call sends a message, which takes the manager about 0.5 ms.
///
/// To end a preserved connection, remove it from any epoll set, call ``forget(named:timeout:)``, and close it. While
/// the manager has its duplicate, closing neither hangs up nor removes it from an epoll set.
///
/// **Room.** A full store drops new descriptors, with no more than a line in the journal. So the stored descriptors are
/// counted here, and exceeding the limit is the error `storeFull`. The manager also removes descriptors whose peer has
/// hung up, which is detected here only when they are forgotten. Listening and datagram sockets that were passed are
/// assumed to come from a socket unit, and are not counted: if the daemon has stored such a socket, preserve it again
/// after each start, before others. All other passed descriptors are counted, even a file of `OpenFile=` or a FIFO of a
/// socket unit: forget such a descriptor once you have taken it, to free its place. A descriptor that the manager has
/// keeps its name: to give it another, forget the old one first.
///
/// **Descriptors.** With a store, three descriptors are reserved, and again after each use. So a daemon that has no
/// descriptor left can still forget, preserve bytes, wait for a barrier and exit.
///
/// Safe to use from any thread. Calls block while the manager's queue is full, up to a timeout.
public final class Preservation: Sendable {
  struct Account {
    /// The largest number of descriptors of each name that the manager may have; no zeros.
    private var held: [String: Int] = [:]
    private(set) var count = 0
    /// The names of which this run has taken or preserved a descriptor.
    var taken: Set<String> = []

    func count(named name: String) -> Int { held[name, default: 0] }

    mutating func add(_ name: String) {
      held[name, default: 0] += 1
      count += 1
    }

    mutating func remove(_ name: String) { count -= held.removeValue(forKey: name) ?? 0 }
  }

  let passed: PassedDescriptors
  private let notify: NotifySocket
  /// The number of descriptors that the store can hold; 0 without a store.
  public let limit: Int
  /// Locked while a message is sent, so that it agrees with the order in the manager's queue.
  let account: Mutex<Account>
  private let reserve = Mutex(Reserve())

  /// Descriptors for when the process can't make any; `nil` while there is none, or it is in use.
  private struct Reserve: ~Copyable {
    /// An empty file of memory.
    var memory: OwnedDescriptor?
    var pipe: BarrierPipe?
  }

  /// Takes over the descriptors that were passed to this process. Call it once in a process, as early as possible.
  ///
  /// - Parameter environment: The environment with systemd's variables. Default: this process's.
  /// - Throws: `malformedVariable`; `malformedInput` when a passed descriptor is not open, since other code has closed
  ///   it; `invalidArgument` the second time. After an error nothing is closed.
  public convenience init(_ environment: ServiceEnvironment = .current) throws(SystemdError) {
    try self.init(environment) { () throws(SystemdError) in try .take(from: environment) }
  }

  package convenience init(
    _ environment: ServiceEnvironment, passed: () throws(SystemdError) -> PassedDescriptors
  ) throws(SystemdError) {
    let notify = try NotifySocket(environment)
    let limit = try environment.fdStoreLimit ?? 0
    self.init(passed: try passed(), notify: notify, limit: limit)
  }

  /// - Parameter limit: The number of descriptors that the manager behind `notify` can hold.
  package init(passed: PassedDescriptors, notify: NotifySocket, limit: Int) {
    self.passed = passed
    self.notify = notify
    self.limit = notify.hasServiceManager ? max(0, limit) : 0
    var account = Account()
    // Sockets of socket units, which a store rarely has.
    let uncounted: [DescriptorUse?] = [.listeningStream, .listeningPackets, .datagram]
    for description in passed.descriptions where !uncounted.contains(description.use) {
      account.add(description.name)
    }
    self.account = Mutex(account)
    refillReserve()
  }

  private func refillReserve() {
    guard limit > 0 else { return }
    reserve.withLock { reserve in
      if reserve.memory == nil { reserve.memory = try? .emptyMemory(named: "preserved") }
      if reserve.pipe == nil { reserve.pipe = try? BarrierPipe() }
    }
  }

  /// The number of descriptors that can still be preserved, by the count kept here. If the state is preserved last,
  /// leave room for it.
  public var room: Int { account.withLock { max(0, limit - $0.count) } }

  // MARK: Preserving

  /// Stores a duplicate of a descriptor for the next run. The caller keeps the descriptor itself.
  ///
  /// - Parameters:
  ///   - descriptor: An open descriptor.
  ///   - name: 1 to 255 ASCII characters without control characters and ':'. It should be unique.
  ///   - polled: Whether the manager removes it once its peer hangs up or it has an error. Default true. Use `false`
  ///     (systemd 246) for descriptors that always poll as hung up or failed, as those of some devices.
  ///   - timeout: How long to wait while the manager's queue is full, here and in the other calls. Default 5 s.
  /// - Throws: `storeFull` when there may be no room, and nothing was sent; `invalidArgument`, `system`, `timedOut`.
  public func preserve(
    _ descriptor: Int32, named name: String, polled: Bool = true, timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return }
    try account.withLock { account throws(SystemdError) in
      guard account.count < limit else { throw .storeFull(name: name, limit: limit) }
      try notify.store(descriptor, named: name, polled: polled, timeout: timeout)
      account.add(name)
      // `closeUnknown` keeps the names of this run.
      account.taken.insert(name)
    }
  }

  /// Stores bytes for the next run, in place of everything stored under this name.
  ///
  /// The bytes are in a sealed file of memory, so they survive the process but not the machine. The earlier ones are
  /// removed first; a crash in between leaves neither.
  ///
  /// - Throws: The errors of ``preserve(_:named:polled:timeout:)``, and `system` when there is no memory. The earlier
  ///   bytes are lost only when sending fails, not with `storeFull`.
  public func preserve(
    _ bytes: [UInt8], named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return }
    // After the file is closed here, and at once: under load its number is soon reused.
    defer { refillReserve() }
    try preserveMemory(bytes, named: name, timeout: timeout)
  }

  private func preserveMemory(
    _ bytes: [UInt8], named name: String, timeout: Duration
  ) throws(SystemdError) {
    let memory = try makeMemory(bytes, named: name)
    let number = memory.rawValue
    try account.withLock { account throws(SystemdError) in
      guard account.count - account.count(named: name) < limit else {
        throw .storeFull(name: name, limit: limit)
      }
      try notify.removeStored(named: name, timeout: timeout)
      account.remove(name)
      try notify.store(number, named: name, polled: false, timeout: timeout)
      account.add(name)
      account.taken.insert(name)
    }
    withExtendedLifetime(memory) {}
  }

  private func makeMemory(
    _ bytes: [UInt8], named name: String
  ) throws(SystemdError) -> OwnedDescriptor {
    do throws(SystemdError) {
      // 249 bytes of the name are enough to recognize it in /proc.
      return try OwnedDescriptor.memory(named: String(name.prefix(249)), bytes)
    } catch {
      guard error.isShortage, let memory = reserve.withLock({ $0.memory.take() }) else {
        throw error
      }
      try memory.fillAndSeal(bytes)
      return memory
    }
  }

  /// Removes everything of this name from the store, so that the next run does not receive it.
  ///
  /// Descriptors of this process stay open. Call it before closing a connection, since otherwise closing does not hang
  /// up.
  ///
  /// - Throws: `invalidArgument` for the name, `system`, `timedOut`.
  public func forget(
    named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return }
    try account.withLock { account throws(SystemdError) in
      try notify.removeStored(named: name, timeout: timeout)
      account.remove(name)
      account.taken.remove(name)
    }
  }

  /// Waits until the manager has read all requests so far, which exiting earlier may lose. It blocks the thread.
  ///
  /// - Parameter timeout: How long to wait. Default 5 s.
  /// - Throws: `timedOut` when the manager has not responded in time.
  public func barrier(timeout: Duration = .seconds(5)) throws(SystemdError) {
    guard limit > 0 else { return }
    // After the pipe is closed.
    defer { refillReserve() }
    try notify.barrier(over: takePipe(), timeout: timeout)
  }

  private func takePipe() throws(SystemdError) -> BarrierPipe {
    if let pipe = reserve.withLock({ $0.pipe.take() }) { return pipe }
    return try BarrierPipe()
  }
}
