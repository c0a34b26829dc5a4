// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A datagram socket that sends to one Unix address, and stays open, so that a process without descriptors can send.
///
/// It is not connected: each datagram names the address, so a receiver that was restarted is found again. Any thread may
/// send, and no call waits.
///
/// Programs sometimes close descriptors by mistake: with closefrom(3) in a library, or with a second close(2). A
/// datagram must then not be written to the file that reuses the number, such as a client's connection. So each use
/// first checks that the number still refers to this socket; if not, it makes a socket for the datagram. A race remains
/// between the check and the use, but only such a mistake can cause it.
final class DatagramSocket: Sendable {
  let number: Int32
  private let identity: FileIdentity
  /// The path of the receiver, or its abstract name without the '@'.
  private let name: String
  private let isAbstract: Bool

  init(to name: String, isAbstract: Bool, purpose: String) throws(SystemdError) {
    let socket = Self.open()
    guard socket >= 0, let identity = FileIdentity(of: socket) else {
      throw .system(purpose: purpose, errno: clinux_errno())
    }
    (number, self.identity) = (socket, identity)
    (self.name, self.isAbstract) = (name, isAbstract)
  }

  deinit { if isOurs { close(number) } }

  /// Returns -1, and sets `errno`, when there is no descriptor left.
  private static func open() -> Int32 {
    socket(AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
  }

  /// Whether the number still refers to this socket. No two sockets of a machine have the same inode.
  private var isOurs: Bool { FileIdentity(of: number) == identity }

  /// Returns 0 or an `errno` value.
  func send(_ bytes: [UInt8], _ descriptors: [Int32] = []) -> Int32 {
    if isOurs { return send(bytes, descriptors, from: number) }
    let other = Self.open()
    guard other >= 0 else { return clinux_errno() }
    defer { close(other) }
    return send(bytes, descriptors, from: other)
  }

  private func send(_ bytes: [UInt8], _ descriptors: [Int32], from number: Int32) -> Int32 {
    let sent = clinux_send_descriptors(
      number, name, name.utf8.count, isAbstract, bytes, bytes.count, descriptors, descriptors.count)
    return sent < 0 ? clinux_errno() : sent == bytes.count ? 0 : EIO
  }
}
