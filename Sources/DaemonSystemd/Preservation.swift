// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// What outlives a restart of the service: descriptors and bytes by name, kept by the service manager between two runs.
///
/// ```swift
/// let preservation = try Preservation()
/// let listener = try preservation.preserved(named: "http", as: .listeningStream)
/// for name in preservation.names(prefix: "c") {
///   if let peer = try preservation.preserved(named: name, as: .stream) { resume(peer, name) }
/// }
/// if let bytes = try preservation.preservedBytes(named: "state") { restore(bytes) }
/// try preservation.forget(named: "state")      // it is in use now: a crash must not bring it back
/// try preservation.closeUnknown()              // what another version has left
/// …
/// try preservation.preserve(peer.rawValue, named: "c17")  // once it has lasted a second: then a crash keeps it too
/// …
/// try preservation.preserve(bytes, named: "state")        // at the end
/// try preservation.barrier()                              // and only then exit
/// ```
///
/// It owns what was passed to this process (``PassedDescriptors``) and the way to the store (``DescriptorStore``).
/// Without a store — no service manager, no `FileDescriptorStoreMax=`, systemd before 254, which does not say that it
/// has one — everything works: nothing is there, and what is to be preserved is answered with `noStore`. Sockets of
/// socket units are there all the same.
///
/// Give each descriptor a name of its own, for good: the manager forgets names, not descriptors, and its order is not
/// to be relied on.
///
/// Each call is a message to the service manager, which hears messages before everything else, and pays about half a
/// millisecond for one: preserve what lasts, and not each client that comes and goes.
///
/// To end a connection that is preserved: take it out of your epoll, ``forget(named:timeout:)``, close. As long as
/// the manager has its duplicate, closing neither hangs up on the peer nor takes it out of an epoll.
///
/// **Places.** A store that is full drops what comes, which only the journal tells. So the places are counted here,
/// and one too many is the error `storeFull`. The count is an upper bound: the manager also drops what a peer has
/// hung up on, which is seen here only when it is forgotten. So a daemon that forgets what it closes is refused too
/// early for moments, and never too late, as long as no other process of the service stores anything. Sockets that
/// listen and datagram sockets that were passed are taken for a socket unit's, which need no place; one that the
/// daemon itself has stored it preserves again at the start, which does nothing else than count it.
///
/// **Descriptors.** Where there is a store, what is needed to preserve bytes once and for one barrier is reserved when
/// this is made (three descriptors beside the socket), and reserved again after each use. So a daemon whose clients
/// have taken every descriptor can still forget, preserve and exit.
///
/// Safe to use from any thread. What is sent waits while the manager's queue is full, up to a timeout.
public final class Preservation: Sendable {
  private struct Account {
    /// How many descriptors of each name the manager has at most; no zeros.
    private var held: [String: Int] = [:]
    private(set) var count = 0
    /// The names of which one was handed out.
    var taken: Set<String> = []

    func count(named name: String) -> Int { held[name, default: 0] }

    mutating func add(_ name: String) {
      held[name, default: 0] += 1
      count += 1
    }

    mutating func remove(_ name: String) { count -= held.removeValue(forKey: name) ?? 0 }
  }

  private let passed: PassedDescriptors
  private let store: DescriptorStore
  /// Locked while something is sent, so that it agrees with the order in the manager's queue.
  private let account: Mutex<Account>
  /// An empty file of memory, for a process that can't make one; `nil` while there is none, or it is in use.
  private let spareMemory = Mutex<OwnedDescriptor?>(nil)

  /// Joins what was passed to a process and the store that it has.
  public init(passed: PassedDescriptors, store: DescriptorStore) {
    self.passed = passed
    self.store = store
    var account = Account()
    for description in passed.descriptions where description.kind.needsPlace {
      account.add(description.name)
    }
    self.account = Mutex(account)
    guard store.limit > 0 else { return }
    store.notify.reserveBarrier()
    refillMemory()
  }

  /// Takes over what was passed to this process: once in its life, as early as possible.
  ///
  /// - Throws: As ``PassedDescriptors/take(from:)`` and ``DescriptorStore/init(_:)``.
  public convenience init(_ environment: ServiceEnvironment = .current) throws(SystemdError) {
    let store = try DescriptorStore(environment)
    self.init(passed: try PassedDescriptors.take(from: environment), store: store)
  }

  // MARK: Places

  /// How many descriptors the manager keeps; 0 without a store.
  public var limit: Int { store.limit }

  /// How many places are free at least. Leave one for the state if it is to be preserved last.
  public var room: Int { account.withLock { max(0, limit - $0.count) } }

  // MARK: Preserving

  /// Has the manager keep a duplicate of a descriptor, which stays yours, for the next run.
  ///
  /// - Parameters:
  ///   - descriptor: An open descriptor.
  ///   - name: 1 to 255 ASCII characters without control characters and ':'. Best one that nothing else has.
  ///   - polled: Whether the manager drops it once its peer hangs up; see
  /// ``DescriptorStore/store(_:named:polled:timeout:)``.
  ///   - timeout: How long to wait while the manager's queue is full.
  /// - Throws: `storeFull` when there may be no place for it: then nothing was sent; `invalidArgument`, `system`,
  ///   `timedOut`.
  @discardableResult
  public func preserve(
    _ descriptor: Int32, named name: String, polled: Bool = true, timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> DescriptorStore.Result {
    try account.withLock { account throws(SystemdError) in
      guard limit == 0 || account.count < limit else {
        throw .storeFull(name: name, limit: limit)
      }
      let result = try store.store(descriptor, named: name, polled: polled, timeout: timeout)
      if result == .sent { account.add(name) }
      return result
    }
  }

  /// Has the manager keep bytes, in place of everything that it has under this name.
  ///
  /// They travel in a sealed file of memory, so they outlive the process and not the machine: for that there are files.
  /// The earlier ones are removed first; a crash in between leaves neither.
  ///
  /// - Throws: As ``preserve(_:named:polled:timeout:)``, and `system` when there is no memory. The earlier
  ///   bytes are lost only where sending has failed, not with `storeFull`.
  @discardableResult
  public func preserve(
    _ bytes: [UInt8], named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> DescriptorStore.Result {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return .noStore }
    // Once the file is closed here: in a flood its number is soon gone.
    defer { refillMemory() }
    return try preserveMemory(bytes, named: name, timeout: timeout)
  }

  private func preserveMemory(
    _ bytes: [UInt8], named name: String, timeout: Duration
  ) throws(SystemdError) -> DescriptorStore.Result {
    let memory = try makeMemory(bytes, named: name)
    let number = memory.rawValue
    let result = try account.withLock { account throws(SystemdError) in
      guard account.count - account.count(named: name) < limit else {
        throw .storeFull(name: name, limit: limit)
      }
      try store.remove(named: name, timeout: timeout)
      account.remove(name)
      let result = try store.store(number, named: name, polled: false, timeout: timeout)
      account.add(name)
      return result
    }
    return withExtendedLifetime(memory) { result }
  }

  private func makeMemory(
    _ bytes: [UInt8], named name: String
  ) throws(SystemdError) -> OwnedDescriptor {
    do throws(SystemdError) {
      // 249 bytes of the name are enough to see in /proc whose it is.
      return try OwnedDescriptor.memory(named: String(name.prefix(249)), bytes)
    } catch {
      guard error.isShortage, let memory = spareMemory.withLock({ $0.take() }) else { throw error }
      try memory.fillAndSeal(bytes)
      return memory
    }
  }

  private func refillMemory() {
    spareMemory.withLock { spare in
      if spare == nil { spare = try? OwnedDescriptor.emptyMemory(named: "preserved") }
    }
  }

  /// Has the manager give up everything of this name, so that the next run does not get it.
  ///
  /// What this process has open stays open. Call it before closing a connection, or its peer is not hung up on.
  ///
  /// - Throws: `invalidArgument` for the name, `system`, `timedOut`.
  @discardableResult
  public func forget(
    named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> DescriptorStore.Result {
    try account.withLock { account throws(SystemdError) in
      let result = try store.remove(named: name, timeout: timeout)
      account.remove(name)
      return result
    }
  }

  /// Waits until the manager has read everything sent so far: before it has, exiting may lose it.
  ///
  /// - Throws: `timedOut` when the manager has not got so far; it blocks the thread until then.
  @discardableResult
  public func barrier(
    timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> DescriptorStore.Result {
    guard limit > 0 else { return .noStore }
    try store.notify.barrier(timeout: timeout)
    return .sent
  }

  // MARK: What is there

  /// What an earlier run, or a socket unit, has left and nobody has taken yet.
  package var descriptions: [PassedDescriptors.Description] { passed.descriptions }

  /// The names of what is there that begin so, each once: `names(prefix: "c")` has "c17".
  public func names(prefix: String = "") -> [String] {
    passed.names.filter { $0.hasPrefix(prefix) }
  }

  /// Hands out the first descriptor of this name that is good for its use; `nil` when none of the name is left.
  ///
  /// ```swift
  /// while let listener = try preservation.preserved(named: "http", as: .listeningStream) { … }
  /// ```
  ///
  /// Whoever takes it owns it. The manager goes on keeping its own until it is told to forget it.
  ///
  /// - Throws: `wrongKind` when what is left of the name is something else; it says what, and stays here.
  public func preserved(
    named name: String, as use: DescriptorUse
  ) throws(SystemdError) -> OwnedDescriptor? {
    let first = passed.takeFirst { $0.name == name && use.admits($0.kind) }
    guard let first else {
      guard let other = passed.descriptions.first(where: { $0.name == name }) else { return nil }
      throw .wrongKind(name: name, expected: use, found: "\(other.kind)")
    }
    account.withLock { _ = $0.taken.insert(name) }
    return first
  }

  /// The bytes preserved under this name; `nil` when there are none.
  ///
  /// The manager keeps them, for the case that this run does not come to using them: once they are in use, forget them,
  /// or a crash brings them back as they were.
  ///
  /// - Parameters:
  ///   - name: As given to ``preserve(_:named:timeout:)``.
  ///   - limit: How many there may be at most.
  /// - Throws: `wrongKind`; `malformedInput` when there are more; `system`. Then they stay here.
  public func preservedBytes(
    named name: String, limit: Int = OwnedDescriptor.memoryLimit
  ) throws(SystemdError) -> [UInt8]? {
    guard let memory = try preserved(named: name, as: .memory) else { return nil }
    do throws(SystemdError) {
      return try memory.memoryBytes(limit: limit)
    } catch {
      passed.giveBack(memory, named: name, kind: .sealedMemory)
      throw error
    }
  }

  /// Closes what nobody has taken, and has the manager forget it: what another version of the daemon has left.
  ///
  /// Call it when all that is known is taken. Of a name of which one was taken the rest is closed here, and not
  /// forgotten, since the manager would forget the one in use as well.
  ///
  /// - Returns: The names, each once.
  /// - Throws: What ``forget(named:timeout:)`` throws, at the end: everything is closed then.
  @discardableResult
  public func closeUnknown(timeout: Duration = .seconds(5)) throws(SystemdError) -> [String] {
    let left = passed.names
    let taken = account.withLock { $0.taken }
    var failure: SystemdError?
    for name in left where !name.isEmpty && !taken.contains(name) {
      do { try forget(named: name, timeout: timeout) } catch { failure = failure ?? error }
    }
    try passed.closeRemaining()
    if let failure { throw failure }
    return left
  }
}

extension DescriptorKind {
  /// Whether one that was passed comes from the store. What socket units listen on looks like this and does not; it
  /// is what a store rarely has.
  fileprivate var needsPlace: Bool {
    switch use {
    case .listeningStream, .listeningPackets, .datagram: false
    default: true
    }
  }
}
