// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// The connection to one service manager, which all copies of a ``NotifySocket`` share.
///
/// It has one socket, which is opened at once and connected with the first message, so that later messages need no
/// descriptor. It stays connected when the manager's path can't be reached any more, as after a chroot(2). A manager
/// that re-executes itself keeps its socket; one that was replaced refuses the old connection, and the same descriptor
/// is connected to it again. A forked child sends over the same socket with its own credentials.
final class NotifyConnection: Sendable {
  private let address: NotifyAddress
  private let kept: Mutex<KeptSocket?>
  private let reserve = Mutex(Reserve())

  /// The descriptors of a barrier, made in advance.
  private struct Reserve: ~Copyable {
    var isWanted = false
    /// The pipe; `nil` while there is none, or it is in use.
    var pipe: BarrierPipe?
  }

  init(to address: NotifyAddress) {
    self.address = address
    // If there is no descriptor now, the first message opens it.
    kept = Mutex(try? KeptSocket(family: AF_UNIX, purpose: Self.purpose))
  }

  static let purpose = "notify the service manager"

  var numberForTesting: Int32? { kept.withLock { $0?.number } }

  // MARK: Sending

  /// - Parameter deadline: The time until which it waits for room in the manager's queue; `nil` to return at once.
  func send(
    _ bytes: [UInt8], descriptors: [Int32], deadline: MonotonicTime?
  ) throws(SystemdError) {
    let socket = try socket()
    do throws(SystemdError) {
      try write(bytes, descriptors, to: socket, deadline)
    } catch {
      guard error.meansDisconnected else { throw error }
      try connect(socket, deadline)
      try write(bytes, descriptors, to: socket, deadline)
    }
  }

  private func write(
    _ bytes: [UInt8], _ descriptors: [Int32], to socket: KeptSocket, _ deadline: MonotonicTime?
  ) throws(SystemdError) {
    // The kernel adds the effective IDs; with others the manager may not recognize the sender.
    var withCredentials = getuid() != geteuid() || getgid() != getegid()
    while true {
      let sent = clinux_send_descriptors(
        socket.number, nil, 0, bytes, bytes.count, descriptors, descriptors.count, withCredentials)
      if sent == bytes.count { return }
      guard sent < 0 else {
        throw .malformedInput(
          "The kernel took only \(sent) of the \(bytes.count) bytes of a notification.")
      }
      let code = clinux_errno()
      if code == EAGAIN {
        guard let deadline else { throw .system(Self.purpose, errno: code) }
        let events = try deadline.wait(for: socket.number, events: POLLOUT, purpose: Self.purpose)
        guard events != 0 else { throw .timedOut("\(Self.purpose), whose queue is full,") }
      } else if withCredentials {
        withCredentials = false
      } else {
        try Self.rest(after: code, deadline)
      }
    }
  }

  /// Waits before another attempt while the kernel lacks memory. Throws other errors, and any without time left.
  private static func rest(
    after code: Int32, _ deadline: MonotonicTime?
  ) throws(SystemdError) {
    guard [EAGAIN, ENOBUFS, ENOMEM].contains(code), let deadline, deadline.milliseconds > 0 else {
      throw .system(purpose, errno: code)
    }
    usleep(1000)
  }

  private func socket() throws(SystemdError) -> KeptSocket {
    try kept.withLock { kept throws(SystemdError) in
      if let socket = kept, socket.isOurs { return socket }
      let socket = try KeptSocket(family: AF_UNIX, purpose: Self.purpose)
      kept = socket
      return socket
    }
  }

  /// Connects the socket. A datagram socket can be connected repeatedly, also while other threads send.
  private func connect(
    _ socket: KeptSocket, _ deadline: MonotonicTime?
  ) throws(SystemdError) {
    let name = address.name
    while clinux_connect_unix(socket.number, name, name.utf8.count, address.isAbstract) != 0 {
      try Self.rest(after: clinux_errno(), deadline)
    }
  }

  // MARK: Barriers

  /// Makes the pipe of the next barrier now, and that of each later one when the one before has ended.
  func reserveBarrier() {
    reserve.withLock { $0.isWanted = true }
    refill()
  }

  private func refill() {
    reserve.withLock { reserve in
      guard reserve.isWanted, reserve.pipe == nil else { return }
      reserve.pipe = try? BarrierPipe()
    }
  }

  private func takePipe() throws(SystemdError) -> BarrierPipe {
    if let pipe = reserve.withLock({ $0.pipe.take() }) { return pipe }
    return try BarrierPipe()
  }

  /// Waits until the manager has closed the end of a pipe that was sent to it.
  func barrier(timeout: Duration) throws(SystemdError) {
    // Once both ends of the pipe are closed: under load their numbers are soon reused.
    defer { refill() }
    try waitAtBarrier(timeout: timeout)
  }

  private func waitAtBarrier(timeout: Duration) throws(SystemdError) {
    let deadline = MonotonicTime.after(timeout)
    let pipe = try takePipe()
    // Alone in its message, as systemd requires.
    try send(
      Array("BARRIER=1".utf8), descriptors: [pipe.writeEnd.rawValue],
      deadline: timeout > .zero ? deadline : nil)
    let readEnd = pipe.closingWriteEnd()
    let purpose = "wait until the service manager has read the notifications"
    let events = try deadline.wait(for: readEnd.rawValue, events: 0, purpose: purpose)
    guard events != 0 else { throw .timedOut(purpose) }
  }
}

private struct BarrierPipe: ~Copyable {
  private let readEnd: OwnedDescriptor
  let writeEnd: OwnedDescriptor

  init() throws(SystemdError) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else {
      throw .system("make a pipe for a barrier", errno: clinux_errno())
    }
    readEnd = OwnedDescriptor(owning: ends[0])
    writeEnd = OwnedDescriptor(owning: ends[1])
  }

  /// Closes the write end, so that the manager's is the last one.
  consuming func closingWriteEnd() -> OwnedDescriptor { readEnd }
}

extension SystemdError {
  /// Whether the error means that the socket is not connected, or that its peer no longer exists.
  fileprivate var meansDisconnected: Bool {
    switch self {
    case .system(_, ENOTCONN), .system(_, ECONNREFUSED), .system(_, ECONNRESET), .system(_, EPIPE),
      .system(_, EDESTADDRREQ):
      true
    default: false
    }
  }
}
