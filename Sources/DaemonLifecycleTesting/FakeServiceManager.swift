// SPDX-License-Identifier: Apache-2.0
internal import CLinux
public import DaemonSystemd

/// Stands in for systemd in tests: receives what a daemon notifies, keeps the descriptors that it stores, answers
/// its barriers, and tells of every mistake in the protocol.
///
/// ```swift
/// let manager = try FakeServiceManager()
/// let notify = try NotifySocket(address: manager.address)
/// try notify.send([.ready, .status("Serving")])
/// let message = try await manager.next(containing: "READY")
/// #expect(message["STATUS"] == "Serving")
/// #expect(manager.violations == [])
/// ```
///
/// A child gets `manager.environment`. Several managers at a time do not disturb each other, and nothing outside
/// of them is changed. Safe to use from any thread.
///
/// What systemd would do silently or with a line in the journal is a sentence in ``violations``, since that is where
/// daemons hang or lose things without a test noticing.
public final class FakeServiceManager: Sendable {
  private let receiver: NotificationReceiver

  /// The value for `NOTIFY_SOCKET`.
  public let address: String

  /// What `FileDescriptorStoreMax=` would say.
  public let descriptorStoreLimit: Int

  /// Listens from now on.
  ///
  /// - Parameters:
  ///   - path: Where in the file system the socket is to be, at most 107 bytes; it is removed with this object. Without
  ///     it the socket is an abstract one, which needs no file.
  ///   - descriptorStoreLimit: How many descriptors a daemon may store; none with 0.
  public init(path: String? = nil, descriptorStoreLimit: Int = 64) throws(SystemdError) {
    let address = path ?? "@fake-service-manager-\(getpid())-\(UInt64.random(in: .min ... .max))"
    receiver = try NotificationReceiver(address: address, limit: descriptorStoreLimit)
    self.address = address
    self.descriptorStoreLimit = descriptorStoreLimit
  }

  deinit { receiver.stop() }

  /// What a child needs to find this manager: `NOTIFY_SOCKET` and `FDSTORE`.
  public var environment: [String: String] {
    var variables = ["NOTIFY_SOCKET": address]
    if descriptorStoreLimit > 0 { variables["FDSTORE"] = String(descriptorStoreLimit) }
    return variables
  }

  // MARK: Messages

  /// Every message so far, in order, those that systemd would drop too.
  public var messages: [Message] { receiver.update { $0.messages } }

  /// What was wrong with the messages so far, a sentence each; empty for a daemon that keeps to the protocol.
  public var violations: [String] { receiver.update { $0.rules.violations } }

  /// What the messages so far add up to.
  public var service: ServiceState { receiver.update { $0.rules.service } }

  /// The next message that was not yet returned, or the next with this field, and with this value if one is given;
  /// passes over the messages before it. Waits without holding a thread of Swift's pool.
  ///
  /// - Throws: `timedOut`, naming the messages that did come.
  public func next(
    containing name: String? = nil, _ value: String? = nil, timeout: Duration = .seconds(10)
  ) async throws(SystemdError) -> Message {
    try await next(timeout: timeout) { $0.has(name, value) }
  }

  /// The same, blocking the thread. For synchronous tests.
  public func next(
    containing name: String? = nil, _ value: String? = nil, timeout: Duration = .seconds(10)
  ) throws(SystemdError) -> Message {
    try next(timeout: timeout) { $0.has(name, value) }
  }

  /// The next message for which `matches` is true; passes over the messages before it.
  public func next(
    timeout: Duration = .seconds(10), where matches: @escaping @Sendable (Message) -> Bool
  ) async throws(SystemdError) -> Message {
    let deadline = MonotonicTime.after(timeout)
    return try await withCheckedContinuation { continuation in
      receiver.wait(until: deadline, where: matches) { continuation.resume(returning: $0) }
    }.get()
  }

  /// The same, blocking the thread.
  public func next(
    timeout: Duration = .seconds(10), where matches: @escaping @Sendable (Message) -> Bool
  ) throws(SystemdError) -> Message {
    let box = ResultBox<Message>()
    receiver.wait(until: .after(timeout), where: matches) { box.put($0) }
    return try box.wait().get()
  }

  // MARK: Reloads

  /// Call it right before you ask the daemon to reload: a `MONOTONIC_USEC=` that is older is a violation from now
  /// on, as for systemd, which ignores such a `RELOADING=1` and waits until the reload times out.
  public func willRequestReload() {
    receiver.update { $0.rules.reloadRequestedAt = MonotonicTime.now().microseconds }
  }

  // MARK: Restarts

  /// Call it before the daemon's next run: what ``service`` says begins anew, and STOPPING=1 of the run before is no
  /// longer final. A mock with this manager does it by itself; what is stored stays.
  public func willRestart() { receiver.update { $0.rules.beginRun() } }

  // MARK: Descriptors

  /// What the daemon has stored, oldest first, without those whose peer has hung up.
  public var storedDescriptors: [StoredDescriptor] { receiver.update { $0.store.descriptors } }

  /// Duplicates of what is stored, under their names, as a restarted daemon would get them.
  public func storedDuplicates() throws(SystemdError) -> PassedDescriptors {
    try receiver.duplicates()
  }

  /// Runs `body` with what a restarted daemon gets: its variables and its descriptors, from number 3 on.
  ///
  /// `LISTEN_PID` is missing, since only the child knows its number. A shell can add it:
  ///
  /// ```swift
  /// try manager.withSuccessor { variables, descriptors in
  ///   try ChildProcess.spawn(
  ///     "/bin/sh", ["-c", "LISTEN_PID=$$ exec mydaemon"],
  ///     environment: variables, descriptors: descriptors)
  /// }
  /// ```
  public func withSuccessor<T>(
    _ body: (_ variables: [String: String], _ descriptors: [Int32: Int32]) throws -> T
  ) throws -> T {
    let passed = try receiver.duplicates()
    let descriptions = passed.descriptions
    var variables = environment
    var numbers: [Int32: Int32] = [:]
    if !descriptions.isEmpty {
      variables["LISTEN_FDS"] = String(descriptions.count)
      variables["LISTEN_FDNAMES"] = descriptions.map(\.name).joined(separator: ":")
      for (index, description) in descriptions.enumerated() {
        numbers[3 + Int32(index)] = description.number
      }
    }
    return try withExtendedLifetime(passed) { try body(variables, numbers) }
  }

  /// Closes everything stored, as systemd does when a unit is stopped.
  public func clearStore() { receiver.update { $0.store.removeAll() } }

  /// A descriptor in the store.
  public struct StoredDescriptor: Sendable, Hashable {
    /// Its name in `FDNAME=`, or "stored".
    public let name: String
    /// Whether it goes when its peer hangs up.
    public let polled: Bool
    /// The manager's own number for it; it may be gone with the next message.
    public let number: Int32
  }
}
