// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The kind of file that a descriptor refers to.
package struct DescriptorKind: Sendable, Hashable, CustomStringConvertible {
  /// The use that it is suitable for; `nil` for other kinds, such as devices and memory that is not sealed.
  let use: DescriptorUse?
  /// The kind in words, as "listening unix stream socket".
  package let description: String

  private init(_ use: DescriptorUse?, _ description: String) {
    (self.use, self.description) = (use, description)
  }

  private init(_ use: DescriptorUse) { self.init(use, use.description) }

  /// A sealed file of memory (memfd_create(2)), which can't be changed any more.
  static let sealedMemory = DescriptorKind(.memory)

  /// Determines the kind of an open descriptor.
  package init(of number: Int32) throws(SystemdError) {
    var status = stat()
    guard fstat(number, &status) == 0 else {
      throw .system("look at file descriptor \(number)", errno: clinux_errno())
    }
    switch Int32(truncatingIfNeeded: status.st_mode) & S_IFMT {
    case S_IFSOCK: self = try DescriptorKind.socket(number)
    case S_IFIFO: self.init(.fifo)
    case S_IFDIR: self.init(.directory)
    case S_IFCHR, S_IFBLK: self.init(nil, "device")
    case S_IFREG:
      let seals = clinux_seals(number)
      // Only files of memory have seals, and one from memfd_create(2) has no link in any directory.
      guard seals >= 0, status.st_nlink == 0 else {
        self.init(.file)
        return
      }
      let isSealed = seals & CLINUX_SEALS_FIXED == CLINUX_SEALS_FIXED
      self = isSealed ? .sealedMemory : DescriptorKind(nil, "memory file")
    // An epoll, a pidfd and so on.
    default: self.init(nil, "other descriptor")
    }
  }

  private static func socket(_ number: Int32) throws(SystemdError) -> DescriptorKind {
    let family = name(ofFamily: try option(SO_DOMAIN, of: number))
    let isListening = try option(SO_ACCEPTCONN, of: number) != 0
    return switch (try option(SO_TYPE, of: number), isListening) {
    case (CLINUX_SOCK_STREAM, true): .init(.listeningStream, "listening \(family) stream socket")
    case (CLINUX_SOCK_STREAM, false): .init(.stream, "\(family) stream connection")
    case (CLINUX_SOCK_SEQPACKET, true):
      .init(.listeningPackets, "listening \(family) packet socket")
    case (CLINUX_SOCK_SEQPACKET, false): .init(.packets, "\(family) packet connection")
    case (CLINUX_SOCK_DGRAM, _): .init(.datagram, "\(family) datagram socket")
    default: .init(nil, "\(family) socket")
    }
  }

  private static func name(ofFamily number: Int32) -> String {
    switch number {
    case AF_UNIX: "unix"
    case AF_INET: "inet"
    case AF_INET6: "inet6"
    case CLINUX_AF_VSOCK: "vsock"
    case AF_NETLINK: "netlink"
    default: "other(\(number))"
    }
  }

  private static func option(_ name: Int32, of number: Int32) throws(SystemdError) -> Int32 {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(number, SOL_SOCKET, name, &value, &size) == 0 else {
      throw .system("look at the socket \(number)", errno: clinux_errno())
    }
    return value
  }
}
