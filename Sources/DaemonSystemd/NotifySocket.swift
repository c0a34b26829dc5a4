// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A socket to the service manager: the sd_notify(3) protocol, implemented in Swift.
///
/// ```swift
/// let notify = try NotifySocket(.current)
/// try notify.send([.ready, .status("Serving")])
/// ```
///
/// Without a service manager nothing is sent, and that is no error: a start by hand needs no special case (see
/// ``hasServiceManager``).
///
/// A message that was sent is in the manager's queue, but may not be accepted: the manager drops messages of processes
/// that `NotifyAccess=` does not admit, with a line in the journal, and ignores unknown fields. ``barrier(timeout:)``
/// waits until the manager has read all earlier messages.
///
/// Any thread may send. One socket is opened when the value is made; copies share it, and it is closed with the last of
/// them. So sending works in a process that has no descriptor left. A manager that was restarted is found again at the
/// same address, and a forked child sends with its own process ID. Sources: sd_notify(3), systemd 261.
public struct NotifySocket: Sendable {
  let socket: DatagramSocket?

  private static let purpose = "notify the service manager"

  /// Makes a socket to an address as in `NOTIFY_SOCKET`: `/path` or `@abstract`; `nil` or an empty text means that
  /// there is no service manager.
  package init(address: String?) throws(SystemdError) {
    guard let address, !address.isEmpty else {
      socket = nil
      return
    }
    let receiver = try NotifyAddress(address)
    socket = try DatagramSocket(
      to: receiver.name, isAbstract: receiver.isAbstract, purpose: Self.purpose)
  }

  /// Makes a socket to this process's service manager, if it has one.
  ///
  /// - Throws: `malformedVariable` for a `NOTIFY_SOCKET` that is neither `/path` nor `@abstract`, such as the `vsock:`
  ///   address of a virtual machine's first process; `system` when no socket can be made.
  public init(_ environment: ServiceEnvironment = .current) throws(SystemdError) {
    try self.init(address: try environment.notifySocket)
  }

  /// Whether there is a service manager to send to.
  public var hasServiceManager: Bool { socket != nil }

  /// Sends all fields in one message.
  ///
  /// The fields are always checked, so that mistakes are found without a service manager, too.
  ///
  /// - Parameters:
  ///   - fields: At least one field, none of them twice, since systemd would read only one. All together may have at
  ///     most 4096 bytes, systemd's limit; a status is sent last and cut to fit.
  ///   - timeout: How long to wait while the manager's queue is full. Default 5 s. With `.zero` it does not block, and
  ///     a full queue is the error `EAGAIN`: use that on a thread that must not block.
  /// - Throws: `invalidArgument` for fields that can't be sent, `system` when a system call fails, `timedOut`.
  public func send(
    _ fields: [NotifyField], timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    try send(NotifyMessage(fields), [], Self.deadline(timeout))
  }

  /// Waits until the manager has read all messages that were sent before, by this process or others. It blocks the
  /// thread.
  ///
  /// ```swift
  /// try notify.send([.status("saved"), .stopping])
  /// try notify.barrier()  // an earlier exit may lose them
  /// ```
  ///
  /// It sends `BARRIER=1` (systemd 246) with one end of a pipe, which the manager closes when it reads the message.
  ///
  /// - Parameter timeout: How long to wait. Default 5 s.
  /// - Throws: `timedOut` when the manager has not responded in time, `system`.
  public func barrier(timeout: Duration = .seconds(5)) throws(SystemdError) {
    if hasServiceManager { try barrier(over: BarrierPipe(), timeout: timeout) }
  }

  /// The same with a pipe that was made in advance.
  func barrier(
    over pipe: consuming BarrierPipe, timeout: Duration
  ) throws(SystemdError) {
    let deadline = Self.deadline(timeout)
    // Alone in its message, as systemd requires.
    try send(NotifyMessage.barrier, [pipe.writeEnd.rawValue], deadline)
    try pipe.wait(until: deadline ?? .now())
  }

  // MARK: The descriptor store

  /// Sends a duplicate of a descriptor to the manager's store.
  ///
  /// - Parameter polled: Whether the manager removes it once its peer hangs up or it has an error.
  package func store(
    _ descriptor: Int32, named name: String, polled: Bool, timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    let message = try NotifyMessage.storing(name, polled: polled)
    do throws(SystemdError) {
      try send(message, [descriptor], Self.deadline(timeout))
    } catch .system(_, EBADF) {
      throw .system(purpose: "store descriptor \(descriptor) as \"\(name)\"", errno: EBADF)
    }
  }

  /// Has the manager close all stored descriptors of a name.
  package func removeStored(
    named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) {
    try send(NotifyMessage.removing(name), [], Self.deadline(timeout))
  }

  /// `nil` to return at once.
  private static func deadline(_ timeout: Duration) -> MonotonicTime? {
    timeout > .zero ? .after(timeout) : nil
  }

  private func send(
    _ message: NotifyMessage, _ descriptors: [Int32], _ deadline: MonotonicTime?
  ) throws(SystemdError) {
    guard let socket else { return }
    while true {
      let code = socket.send(message.bytes, descriptors)
      if code == 0 { return }
      // The manager's queue is full, the kernel lacks memory for a moment, or too many descriptors are under way.
      guard [EAGAIN, ENOBUFS, ENOMEM, ETOOMANYREFS].contains(code), let deadline else {
        throw .system(purpose: Self.purpose, errno: code)
      }
      guard deadline.milliseconds > 0 else {
        throw code == EAGAIN
          ? .timedOut(purpose: "\(Self.purpose), whose queue is full,")
          : .system(purpose: Self.purpose, errno: code)
      }
      usleep(1000)
    }
  }
}
