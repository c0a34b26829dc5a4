import CLinux

/// One connection for one message, as over vsock.
struct NotifyChannel: ~Copyable {
  private let connection: OwnedDescriptor
  /// A stream's message ends with the stream; the others keep their own bounds.
  private let isStream: Bool
  /// Only a Unix socket carries descriptors and credentials.
  private let isLocal: Bool
  private static let purpose = NotifyConnection.purpose

  /// For tests: a socket connected by someone else.
  init(connected socket: consuming OwnedDescriptor, isStream: Bool, isLocal: Bool) {
    connection = socket
    self.isStream = isStream
    self.isLocal = isLocal
  }

  // MARK: Connecting

  /// Tries the kinds in turn where the address leaves it open: which ones there are depends on the hypervisor.
  init(
    toVsock cid: UInt32, port: UInt32, kind: NotifyAddress.VsockKind?, deadline: Deadline
  ) throws(SystemdError) {
    let kinds = kind.map { [$0] } ?? [.dgram, .seqpacket, .stream]
    for kind in kinds.dropLast() {
      do {
        let socket = try NotifyChannel.connectVsock(cid, port, kind, deadline)
        self.init(connected: socket, isStream: false, isLocal: false)
        return
      } catch .system(_, let code) where NotifyChannel.meansUnsupported(code) {}
    }
    let last = kinds.last ?? .stream
    let socket = try NotifyChannel.connectVsock(cid, port, last, deadline)
    self.init(connected: socket, isStream: last == .stream, isLocal: false)
  }

  private static func connectVsock(
    _ cid: UInt32, _ port: UInt32, _ kind: NotifyAddress.VsockKind, _ deadline: Deadline
  ) throws(SystemdError) -> OwnedDescriptor {
    let type =
      switch kind {
      case .dgram: CLINUX_SOCK_DGRAM
      case .seqpacket: CLINUX_SOCK_SEQPACKET
      case .stream: CLINUX_SOCK_STREAM
      }
    let socket = try open(CLINUX_AF_VSOCK, type)
    // A port below 1024 shows the host that root has sent it. Without the right to have one, any port does.
    for own in stride(from: UInt32(1023), to: 0, by: -1) {
      if clinux_bind_vsock(socket.rawValue, CLINUX_VSOCK_ANY, own) == 0 { break }
      if clinux_errno() != EADDRINUSE { break }
    }
    if clinux_connect_vsock(socket.rawValue, cid, port) == 0 { return socket }
    guard clinux_errno() == EINPROGRESS else { throw .system(purpose, errno: clinux_errno()) }
    guard try deadline.wait(for: socket.rawValue, events: POLLOUT, purpose: purpose) != 0 else {
      throw .timedOut(purpose)
    }
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    let result = getsockopt(socket.rawValue, SOL_SOCKET, SO_ERROR, &code, &size)
    guard result == 0, code == 0 else {
      throw .system(purpose, errno: code != 0 ? code : clinux_errno())
    }
    return socket
  }

  private static func meansUnsupported(_ code: Int32) -> Bool {
    [ENODEV, EOPNOTSUPP, ESOCKTNOSUPPORT, EPROTONOSUPPORT, EPROTOTYPE].contains(code)
  }

  private static func open(_ family: Int32, _ type: Int32) throws(SystemdError) -> OwnedDescriptor {
    let number = socket(family, type | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    guard number >= 0 else { throw .system(purpose, errno: clinux_errno()) }
    return OwnedDescriptor(owning: number)
  }

  // MARK: Sending

  borrowing func send(
    _ bytes: [UInt8], descriptors: [Int32], deadline: Deadline, waits: Bool
  ) throws(SystemdError) {
    guard isLocal || descriptors.isEmpty else {
      throw .invalidArgument("Descriptors can't be sent over vsock: they don't leave the machine.")
    }
    try Self.write(
      bytes, descriptors: descriptors, to: connection.rawValue, isLocal: isLocal,
      isStream: isStream, deadline: deadline, waits: waits)
    if isStream { try finish(deadline) }
  }

  /// Writes one message into a connected socket, which does not block.
  static func write(
    _ bytes: [UInt8], descriptors: [Int32], to socket: Int32, isLocal: Bool, isStream: Bool,
    deadline: Deadline, waits: Bool
  ) throws(SystemdError) {
    // The kernel tells the manager the effective ids by itself; with others the manager may not know the sender.
    var withCredentials = isLocal && (getuid() != geteuid() || getgid() != getegid())
    var offset = 0
    while offset < bytes.count {
      let sent = bytes[offset...].withUnsafeBytes {
        clinux_send_descriptors(
          socket, $0.baseAddress, $0.count, descriptors, descriptors.count, withCredentials)
      }
      if sent >= 0 {
        offset += sent
        guard offset == bytes.count || isStream else {
          throw .malformedInput(
            "The kernel took only \(sent) of the \(bytes.count) bytes of a notification.")
        }
        continue
      }
      let code = clinux_errno()
      if code == EAGAIN {
        guard waits else { throw .system(purpose, errno: code) }
        let events = try deadline.wait(for: socket, events: POLLOUT, purpose: purpose)
        guard events != 0 else { throw .timedOut("\(purpose), whose queue is full,") }
      } else if withCredentials {
        withCredentials = false
      } else {
        throw .system(purpose, errno: code)
      }
    }
  }

  /// A stream's reader takes the end as the end of the message; closing before it has read could lose bytes.
  private borrowing func finish(_ deadline: Deadline) throws(SystemdError) {
    guard shutdown(connection.rawValue, CLINUX_SHUT_WR) == 0 else {
      throw .system(NotifyChannel.purpose, errno: clinux_errno())
    }
    var byte: UInt8 = 0
    while true {
      let count = recv(connection.rawValue, &byte, 1, 0)
      if count == 0 { return }
      if count > 0 { continue }  // nothing is to be said here
      let code = clinux_errno()
      if code == EINTR { continue }
      guard code == EAGAIN else { throw .system(NotifyChannel.purpose, errno: code) }
      let events = try deadline.wait(
        for: connection.rawValue, events: POLLIN, purpose: NotifyChannel.purpose)
      guard events != 0 else { throw .timedOut("\(NotifyChannel.purpose) to the end") }
    }
  }
}
