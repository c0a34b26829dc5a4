// SPDX-License-Identifier: Apache-2.0
/// A socket to the service manager: the sd_notify(3) protocol, implemented in Swift.
///
/// ```swift
/// let notify = try NotifySocket(.current)
/// try notify.send([.ready, .status("Serving")])
/// ```
///
/// Without a service manager, sending does nothing and returns ``Result/noServiceManager``, so a daemon needs no
/// special case for a start by hand.
///
/// A message that was sent is in the manager's queue, but may not be accepted: the manager drops messages of processes
/// that ``NotifyAccess`` does not admit, with a line in the journal, and ignores unknown fields. ``barrier(timeout:)``
/// waits until the manager has read all earlier messages.
///
/// Any thread may send. One socket is opened when the value is made; copies share it, and it is closed with the last of
/// them. So sending works in a process that has no descriptor left, and after a chroot(2). A manager that was restarted
/// is found again at the same address, and a forked child sends with its own process ID. Sources: sd_notify(3), systemd
/// 261.
public struct NotifySocket: Sendable {
  private let connection: NotifyConnection?

  /// The result of sending a message.
  public enum Result: Sendable, Hashable {
    /// The message is in the manager's queue.
    case sent
    /// There is no service manager.
    case noServiceManager
  }

  /// Makes a socket to an address as in `NOTIFY_SOCKET`; `nil` or an empty text means that there is no service manager.
  ///
  /// - Parameter address: `/path` or `@abstract`.
  /// - Throws: `malformedVariable` for any other text, including the `vsock:` address of a virtual machine's first
  ///   process.
  public init(address: String?) throws(SystemdError) {
    guard let address, !address.isEmpty else {
      connection = nil
      return
    }
    connection = NotifyConnection(to: try NotifyAddress(address))
  }

  /// Makes a socket to this process's service manager, if it has one.
  ///
  /// - Throws: `malformedVariable` for `NOTIFY_SOCKET`.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    try self.init(address: try environment.notifySocket)
  }

  /// Whether there is a service manager to send to.
  public var hasServiceManager: Bool { connection != nil }

  var numberForTesting: Int32? { connection?.numberForTesting }

  /// Sends all fields in one message.
  ///
  /// The fields are checked even without a service manager, so that mistakes are found without one.
  ///
  /// - Parameters:
  ///   - fields: At least one field. Two statuses, or two names for descriptors, are an error, since systemd would read
  ///     only one. All fields together may have at most 4096 bytes, which is what systemd reads; a status is sent last
  ///     and cut to fit.
  ///   - descriptors: At most 253, which the kernel duplicates: the sender's stay open. Default: none.
  ///   - timeout: How long to wait while the manager's queue is full. Default 5 s. With `.zero` it does not block, and
  ///     a full queue is the error `EAGAIN`: use that on a thread that must not block.
  /// - Returns: Whether the message was sent.
  /// - Throws: `invalidArgument` for fields that can't be sent, `system` when a system call fails, `timedOut`.
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

  /// Waits until the manager has read all messages that were sent before, by this process or others. It blocks the
  /// thread.
  ///
  /// ```swift
  /// try notify.send([.storeDescriptors(name: "state", polled: false)], descriptors: [memory.rawValue])
  /// try notify.barrier(timeout: .seconds(5))  // now it is safe to exit
  /// ```
  ///
  /// It sends `BARRIER=1` (systemd 246) with one end of a pipe, which the manager closes when it reads the message.
  ///
  /// - Parameter timeout: How long to wait.
  /// - Returns: Whether there is a service manager.
  /// - Throws: `timedOut` when the manager has not responded in time, `system`.
  @discardableResult
  public func barrier(timeout: Duration) throws(SystemdError) -> Result {
    guard let connection else { return .noServiceManager }
    try connection.barrier(timeout: timeout)
    return .sent
  }

  /// Makes the descriptors of a barrier in advance, for a process that may have none left later.
  package func reserveBarrier() { connection?.reserveBarrier() }
}
