// SPDX-License-Identifier: Apache-2.0
/// The use that a daemon requires a descriptor for, whatever its address family.
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
  /// A FIFO or a pipe.
  case fifo
  /// A regular file.
  case file
  /// A directory.
  case directory
  /// Any descriptor; the caller determines its kind.
  case any

  func admits(_ kind: DescriptorKind) -> Bool { self == .any || self == kind.use }

  /// The use in words, as "listening stream socket".
  public var description: String {
    switch self {
    case .listeningStream: "listening stream socket"
    case .listeningPackets: "listening packet socket"
    case .stream: "stream connection"
    case .packets: "packet connection"
    case .datagram: "datagram socket"
    case .memory: "sealed memory file"
    case .fifo: "FIFO"
    case .file: "file"
    case .directory: "directory"
    case .any: "descriptor"
    }
  }
}
