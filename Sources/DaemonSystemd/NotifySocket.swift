// SPDX-License-Identifier: Apache-2.0
/// The way to the service manager: the sd_notify(3) protocol, spoken natively.
///
/// ```swift
/// let notify = try NotifySocket(.current)
/// try notify.send([.ready, .status("Serving")])
/// ```
///
/// Without a service manager, sending does nothing and says so in its result, so a daemon needs no second path for
/// a start by hand.
///
/// *Sent* means that the message is in the manager's queue, not that the manager accepted it: it drops, with a line
/// in the journal, what comes from a process that ``NotifyAccess`` does not admit, and it ignores fields that it does
/// not know. ``barrier(timeout:)`` waits until it has looked at everything sent before.
///
/// Any thread may send. It opens one socket when it is made, which its copies share and which is
/// closed with the last of them: so sending works in a process that has no descriptor left, and after a chroot(2). A
/// manager that was restarted is found again at the same address, and a forked child sends as itself. Sources:
/// sd_notify(3), systemd 261.
public struct NotifySocket: Sendable {
  private let connection: NotifyConnection?

  /// What became of a message.
  public enum Result: Sendable, Hashable {
    /// It is in the manager's queue.
    case sent
    /// There is nobody to send it to.
    case noServiceManager
  }

  /// Reads an address as `NOTIFY_SOCKET` has it; `nil` or an empty one means that there is no service manager.
  ///
  /// - Parameter address: `/path` or `@abstract`.
  /// - Throws: `malformedVariable` for any other; the `vsock:` of a virtual machine's first process too.
  public init(address: String?) throws(SystemdError) {
    guard let address, !address.isEmpty else {
      connection = nil
      return
    }
    connection = NotifyConnection(to: try NotifyAddress(address))
  }

  /// The socket of this process's service manager, if it has one.
  ///
  /// - Throws: `malformedVariable` for `NOTIFY_SOCKET`.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    try self.init(address: try environment.notifySocket)
  }

  /// Whether there is somebody to send to.
  public var hasServiceManager: Bool { connection != nil }

  var numberForTesting: Int32? { connection?.numberForTesting }

  /// Sends all fields in one message.
  ///
  /// The fields are checked also when there is no service manager, so that a mistake shows without one.
  ///
  /// - Parameters:
  ///   - fields: At least one; of two statuses or two names for descriptors only one could be read, so that is
  ///     an error. All of them together have at most 4096 bytes, which is what systemd reads; a status comes last and
  /// is cut to fit.
  ///   - descriptors: At most 253, duplicated by the kernel: the sender's own stay open.
  ///   - timeout: How long to wait while the manager's queue is full. With `.zero` it never waits: then a full queue is
  ///     the error `EAGAIN`. Use that on a thread that must not block.
  /// - Throws: `invalidArgument` for fields that can't be sent, `system` for what the kernel said, `timedOut`.
  @discardableResult
  public func send(
    _ fields: [NotifyField], descriptors: [Int32] = [], timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> Result {
    let message = try NotifyMessage(fields, descriptorCount: descriptors.count)
    guard let connection else { return .noServiceManager }
    try connection.send(
      message.bytes, descriptors: descriptors,
      deadline: timeout > .zero ? .after(timeout) : nil)
    return .sent
  }

  /// Waits until the manager has read everything sent before, by this process or, before it, by others.
  ///
  /// ```swift
  /// try notify.send([.storeDescriptors(name: "state", polled: false)], descriptors: [memory.rawValue])
  /// try notify.barrier(timeout: .seconds(5))  // now it is safe to exit
  /// ```
  ///
  /// It sends `BARRIER=1` (246) with the end of a pipe, which the manager closes once it gets there.
  ///
  /// - Parameter timeout: How long to wait; it blocks the thread.
  /// - Throws: `timedOut` when the manager has not answered by then, `system`.
  @discardableResult
  public func barrier(timeout: Duration) throws(SystemdError) -> Result {
    guard let connection else { return .noServiceManager }
    try connection.barrier(timeout: timeout)
    return .sent
  }

  /// Has what a barrier needs made in advance, for a process that may have no descriptor left by then.
  package func reserveBarrier() { connection?.reserveBarrier() }
}
