// SPDX-License-Identifier: Apache-2.0
/// What a daemon requires a descriptor for: a kind, whatever its address family.
public enum DescriptorUse: Sendable, Hashable, CustomStringConvertible {
  /// To accept streams from (`ListenStream=`).
  case listeningStream
  /// To accept connections of whole packets from (`ListenSequentialPacket=`).
  case listeningPackets
  /// To talk over: one connection that is a stream.
  case stream
  /// To talk over: one connection of whole packets.
  case packets
  /// To send and receive datagrams (`ListenDatagram=`).
  case datagram
  /// To read bytes from that nobody changes any more: a sealed file of memory.
  case memory
  /// A FIFO or a pipe.
  case fifo
  /// A regular file.
  case file
  /// A directory.
  case directory
  /// Anything: what it is is for the caller to find out.
  case any

  func admits(_ kind: DescriptorKind) -> Bool { self == .any || self == kind.use }

  /// As in "listening stream socket".
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
