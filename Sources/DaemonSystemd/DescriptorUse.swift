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

  /// Whether a descriptor of this kind is good for it.
  func admits(_ kind: DescriptorKind) -> Bool {
    switch (self, kind) {
    case (.listeningStream, .listeningStream), (.listeningPackets, .listeningPackets),
      (.stream, .stream), (.packets, .packets), (.datagram, .datagram),
      (.memory, .memoryFile(isSealed: true)), (.fifo, .fifo), (.file, .file),
      (.directory, .directory), (.any, _):
      true
    default: false
    }
  }

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
