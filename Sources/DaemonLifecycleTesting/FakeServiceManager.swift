// SPDX-License-Identifier: Apache-2.0
internal import CLinux
public import DaemonSystemd

/// A stand-in for systemd in tests: it receives a daemon's notifications, keeps the descriptors that it stores, answers
/// its barriers, and reports messages out of order.
///
/// ```swift
/// let manager = try FakeServiceManager()
/// let notify = try NotifySocket(ServiceEnvironment(manager.environment))
/// try notify.send([.ready, .status("Serving")])
/// let message = try await manager.next(containing: "READY=1")
/// #expect(message["STATUS"] == "Serving")
/// #expect(manager.violations == [])
/// ```
///
/// Pass ``environment`` to a child. Several managers can exist at the same time; they change nothing outside of
/// themselves. Safe to use from any thread.
///
/// A message that systemd would ignore because of its time or place, silently or with a line in the journal, adds a
/// sentence to ``violations``: such mistakes make a daemon hang or lose descriptors unnoticed. `NotifySocket` already
/// refuses a malformed field.
public final class FakeServiceManager: Sendable {
  private let receiver: NotificationReceiver

  /// The value for `NOTIFY_SOCKET`.
  package let address: String

  /// The variables that a child needs to find this manager: `NOTIFY_SOCKET` and `FDSTORE`.
  public let environment: [String: String]

  /// Makes a manager, which listens at once.
  ///
  /// - Parameters:
  ///   - path: The socket's path, at most 107 bytes; the file is removed with this object. Default `nil`: an abstract
  ///     socket, which needs no file.
  ///   - descriptorStoreLimit: The number of descriptors that a daemon may store, as `FileDescriptorStoreMax=`. Default
  ///     64.
  public init(path: String? = nil, descriptorStoreLimit: Int = 64) throws(SystemdError) {
    let address = path ?? "@fake-service-manager-\(getpid())-\(UInt64.random(in: .min ... .max))"
    receiver = try NotificationReceiver(address: address, limit: descriptorStoreLimit)
    self.address = address
    var variables = ["NOTIFY_SOCKET": address]
    if descriptorStoreLimit > 0 { variables["FDSTORE"] = String(descriptorStoreLimit) }
    environment = variables
  }

  deinit { receiver.stop() }

  // MARK: Messages

  /// All messages so far, in order.
  public var messages: [Message] { receiver.update { $0.messages } }

  /// The violations of the protocol so far, one sentence each; empty for a correct daemon.
  public var violations: [String] { receiver.update { $0.rules.violations } }

  /// The state of the service according to the messages so far.
  public var service: ServiceState { receiver.update { $0.rules.service } }

  /// Waits for the next message, or the next with a given field or condition, and skips the messages before it. It does
  /// not block a thread of Swift's pool.
  ///
  /// - Parameters:
  ///   - field: A field with its value, `READY=1`, or a field's name, `READY`. Default `nil`: any message.
  ///   - timeout: How long to wait. Default 10 s.
  ///   - matches: The condition. Default: none.
  /// - Returns: The message.
  /// - Throws: `timedOut`, which lists the messages that were received.
  public func next(
    containing field: String? = nil, timeout: Duration = .seconds(10),
    where matches: @Sendable (Message) -> Bool = { _ in true }
  ) async throws(SystemdError) -> Message {
    var deadline = MonotonicTime.after(timeout)
    while true {
      let message = try receiver.next(deadline) { $0.has(field) && matches($0) }
      if let message { return message }
      // A task that is cancelled waits no longer.
      do { try await Task.sleep(for: .milliseconds(1)) } catch { deadline = .now() }
    }
  }

  /// `next` for this package's synchronous tests: it blocks the thread.
  package func next(
    containing field: String? = nil, timeout: Duration = .seconds(10),
    where matches: (Message) -> Bool = { _ in true }
  ) throws(SystemdError) -> Message {
    let deadline = MonotonicTime.after(timeout)
    while true {
      let message = try receiver.next(deadline) { $0.has(field) && matches($0) }
      if let message { return message }
      usleep(1000)
    }
  }

  // MARK: Reloads

  /// Records the time of a request to reload; call it right before the request. An older `MONOTONIC_USEC=` is a
  /// violation from then on: systemd ignores such a `RELOADING=1` and waits until the reload times out.
  public func willRequestReload() {
    receiver.update { $0.rules.reloadRequestedAt = MonotonicTime.now().microseconds }
  }

  // MARK: Restarts

  /// Resets ``service`` for the daemon's next run; call it before that run begins. Stored descriptors are kept. A mock
  /// with this manager calls it automatically.
  public func willRestart() { receiver.update { $0.rules.service = ServiceState() } }

  // MARK: Descriptors

  /// The descriptors that the daemon has stored, oldest first, without polled ones whose peer has hung up.
  package var storedDescriptors: [StoredDescriptor] { receiver.update { $0.store.descriptors } }

  /// Returns duplicates of the stored descriptors under their names, as a restarted daemon would receive them.
  package func storedDuplicates() throws(SystemdError) -> PassedDescriptors {
    try receiver.update { state in
      let stored = state.store.descriptors.map { ($0.number, $0.name) }
      return Result { () throws(SystemdError) in try PassedDescriptors(duplicating: stored) }
    }.get()
  }
}
