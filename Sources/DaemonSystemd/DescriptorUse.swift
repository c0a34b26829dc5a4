// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The use for which a daemon requires a descriptor, whatever its address family. Minor versions may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum DescriptorUse: Sendable, Hashable, CustomStringConvertible {
  /// A socket to accept stream connections from (`ListenStream=`).
  case listeningStream
  /// A socket to accept connections of packets from (`ListenSequentialPacket=`).
  case listeningPackets
  /// A stream connection.
  case stream
  /// A connection of packets.
  case packets
  /// A socket to send and receive datagrams (`ListenDatagram=`).
  case datagram
  /// A sealed file of memory, whose bytes can't change.
  case memory
  /// Any descriptor, such as a file, a directory or a FIFO; the caller determines its kind.
  case any

  /// The use in words, as "listening stream socket".
  public var description: String {
    switch self {
    case .listeningStream: "listening stream socket"
    case .listeningPackets: "listening packet socket"
    case .stream: "stream connection"
    case .packets: "packet connection"
    case .datagram: "datagram socket"
    case .memory: "sealed memory file"
    case .any: "descriptor"
    }
  }

  /// The use that an open descriptor is suitable for; `nil` for other kinds, such as files and devices.
  package init?(of number: Int32) throws(SystemdError) {
    var status = stat()
    guard fstat(number, &status) == 0 else {
      throw .system(purpose: "look at file descriptor \(number)", errno: clinux_errno())
    }
    switch Int32(truncatingIfNeeded: status.st_mode) & S_IFMT {
    case S_IFSOCK:
      let isListening = try Self.option(SO_ACCEPTCONN, of: number) != 0
      switch try Self.option(SO_TYPE, of: number) {
      case CLINUX_SOCK_STREAM: self = isListening ? .listeningStream : .stream
      case CLINUX_SOCK_SEQPACKET: self = isListening ? .listeningPackets : .packets
      case CLINUX_SOCK_DGRAM: self = .datagram
      default: return nil
      }
    case S_IFREG:
      let seals = clinux_seals(number)
      // Only files of memory have seals, and one from memfd_create(2) has no link in any directory.
      guard seals >= 0, status.st_nlink == 0, seals & CLINUX_SEALS_FIXED == CLINUX_SEALS_FIXED
      else { return nil }
      self = .memory
    default: return nil
    }
  }

  private static func option(_ name: Int32, of number: Int32) throws(SystemdError) -> Int32 {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(number, SOL_SOCKET, name, &value, &size) == 0 else {
      throw .system(purpose: "look at the socket \(number)", errno: clinux_errno())
    }
    return value
  }
}
