import CLinux

/// The way to the service manager: the sd_notify(3) protocol, spoken natively.
///
///     let notify = try NotifySocket(.current)
///     try notify.send([.ready, .status("Serving")])
///
/// Without a service manager, sending does nothing and says so in its result, so a daemon needs no second path for
/// a start by hand.
///
/// *Sent* means that the message is in the manager's queue, not that the manager accepted it: it drops, with a line
/// in the journal, what comes from a process that ``NotifyAccess`` does not admit, and it ignores fields that it does
/// not know. ``barrier(timeout:)`` waits until it has looked at everything sent before.
///
/// Any thread may send. Each message opens a socket of its own, so nothing is kept that a fork, a changed root or a
/// restarted manager could break. Sources: sd_notify(3), systemd 261.
public struct NotifySocket: Sendable {
  private let destination: NotifyAddress?

  /// What became of a message.
  public enum Result: Sendable, Hashable {
    /// It is in the manager's queue.
    case sent
    /// There is nobody to send it to.
    case noServiceManager
  }

  /// Reads an address as `NOTIFY_SOCKET` has it; `nil` or an empty one means that there is no service manager.
  ///
  /// - Parameter address: `/path`, `@abstract` or `vsock:CID:PORT`, also `vsock-stream:`, `vsock-seqpacket:` and
  ///   `vsock-dgram:`.
  public init(address: String?) throws(SystemdError) {
    guard let address, !address.isEmpty else {
      destination = nil
      return
    }
    switch NotifyAddress.parse(address) {
    case .success(let parsed): destination = parsed
    case .failure(let reason):
      throw .malformedVariable(name: "NOTIFY_SOCKET", value: address, reason: reason.text)
    }
  }

  /// The socket of this process's service manager, if it has one. Throws when `NOTIFY_SOCKET` is malformed.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    try self.init(address: try environment.notifySocket)
  }

  /// Whether there is somebody to send to.
  public var hasServiceManager: Bool { destination != nil }

  /// Sends all fields in one message.
  ///
  /// The fields are checked also when there is no service manager, so that a mistake shows without one.
  ///
  /// - Parameters:
  ///   - fields: At least one; of two statuses or two names for descriptors only one could be read, so that is
  ///     an error. All of them together have at most 4096 bytes, which is what systemd reads; a status comes last and is cut to fit.
  ///   - descriptors: At most 253, duplicated by the kernel: the sender's own stay open.
  ///   - timeout: How long to wait while the manager's queue is full. With `.zero` it never waits: then a full queue is
  ///     the error `EAGAIN`. Use that on a thread that must not block.
  /// - Throws: `invalidArgument` for fields that can't be sent, `system` for what the kernel said, `timedOut`.
  @discardableResult
  public func send(
    _ fields: [NotifyField], descriptors: [Int32] = [], timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> Result {
    let message = try NotifyMessage(fields, descriptorCount: descriptors.count)
    return try send(
      message.bytes, descriptors: descriptors, deadline: Deadline(after: timeout), timeout)
  }

  /// Waits until the manager has read everything sent before, by this process or, before it, by others.
  ///
  ///     try notify.send([.storeDescriptors(name: "state", polled: false)], descriptors: [memory.rawValue])
  ///     try notify.barrier(timeout: .seconds(5))  // now it is safe to exit
  ///
  /// It sends `BARRIER=1` (246) with the end of a pipe, which the manager closes once it gets there. Over vsock, which
  /// carries no descriptors, it is an error.
  ///
  /// - Throws: `timedOut` when the manager has not answered; it blocks the thread until then.
  @discardableResult
  public func barrier(timeout: Duration) throws(SystemdError) -> Result {
    guard hasServiceManager else { return .noServiceManager }
    let deadline = Deadline(after: timeout)
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else {
      throw .system("make a pipe for a barrier", errno: clinux_errno())
    }
    let readEnd = OwnedDescriptor(owning: ends[0])
    do {
      let writeEnd = OwnedDescriptor(owning: ends[1])
      // Alone in its message, as systemd wants it. Our copy is closed with this scope: the manager's is the last one.
      try send(
        Array("BARRIER=1".utf8), descriptors: [writeEnd.rawValue], deadline: deadline, timeout)
    }
    let purpose = "wait until the service manager has read the notifications"
    let events = try deadline.wait(for: readEnd.rawValue, events: 0, purpose: purpose)
    guard events != 0 else { throw .timedOut(purpose) }
    return .sent
  }

  // MARK: Sending

  @discardableResult
  private func send(
    _ bytes: [UInt8], descriptors: [Int32], deadline: Deadline, _ timeout: Duration
  ) throws(SystemdError) -> Result {
    guard let destination else { return .noServiceManager }
    let channel = try NotifyChannel(to: destination, deadline: deadline)
    try channel.send(bytes, descriptors: descriptors, deadline: deadline, waits: timeout > .zero)
    return .sent
  }
}
