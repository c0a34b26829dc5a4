// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A datagram socket that stays open, so that a process without descriptors can send.
///
/// Programs sometimes close descriptors by mistake: with closefrom(3) in a library, or with a second close(2). A
/// message must then not be written to the file that reuses the number, such as a client's connection. So each use
/// first checks that the number still refers to this socket. A race remains between the check and the use, which only
/// such a mistake can lose.
final class KeptSocket: Sendable {
  let number: Int32
  private let identity: FileIdentity

  /// Makes a socket that is not connected yet, non-blocking and close-on-exec.
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

  /// Whether the number still refers to this socket. No two sockets of a machine have the same inode.
  var isOurs: Bool { FileIdentity(of: number) == identity }

  deinit { if isOurs { _ = close(number) } }
}
