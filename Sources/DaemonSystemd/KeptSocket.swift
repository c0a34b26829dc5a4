// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A datagram socket that stays open, so that a process without descriptors can send.
///
/// Programs close numbers that are not theirs: closefrom(3) in a library, a second close(2) in a bug. What is sent here
/// must then not go into the file that has got the number, a client's connection for instance. So each use looks first
/// whether the number still leads to this socket; between that look and the use a race remains, which only such a
/// mistake can lose.
final class KeptSocket: Sendable {
  let number: Int32
  private let identity: FileIdentity

  /// Not connected yet, non-blocking and close-on-exec.
  init(family: Int32, purpose: String) throws(SystemdError) {
    let number = socket(
      family, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    guard number >= 0 else { throw .system(purpose, errno: clinux_errno()) }
    guard let identity = FileIdentity(of: number) else {
      let code = clinux_errno()
      _ = close(number)
      throw .system(purpose, errno: code)
    }
    self.number = number
    self.identity = identity
  }

  /// Whether the number still leads to this socket. No two sockets of a machine have one inode.
  var isOurs: Bool { FileIdentity(of: number) == identity }

  deinit { if isOurs { _ = close(number) } }
}
