import CLinux

/// What the file behind a descriptor is.
package enum DescriptorKind: Sendable, Hashable, CustomStringConvertible {
  /// A socket that accepts streams, as of `ListenStream=`.
  case listeningStream(Family)
  /// A socket that accepts connections of whole packets, as of `ListenSequentialPacket=`.
  case listeningPackets(Family)
  /// One connection that is a stream.
  case stream(Family)
  /// One connection of whole packets.
  case packets(Family)
  /// As of `ListenDatagram=`.
  case datagram(Family)
  /// Any other socket.
  case otherSocket(Family)
  /// As of `ListenFIFO=`; a pipe too.
  case fifo
  /// A file of memory without a name (memfd_create(2)); sealed if nobody can change it any more.
  case memoryFile(isSealed: Bool)
  /// A regular file.
  case file
  /// A directory.
  case directory
  /// As of `ListenSpecial=`.
  case device
  /// Anything else: an epoll, a pidfd and so on.
  case other

  /// The address family of a socket.
  package enum Family: Sendable, Hashable {
    /// Local; IPv4; IPv6; between a virtual machine and its host; to the kernel.
    case unix, inet, inet6, vsock, netlink
    /// Any other, by its number.
    case other(Int32)

    init(_ number: Int32) {
      switch number {
      case AF_UNIX: self = .unix
      case AF_INET: self = .inet
      case AF_INET6: self = .inet6
      case CLINUX_AF_VSOCK: self = .vsock
      case AF_NETLINK: self = .netlink
      default: self = .other(number)
      }
    }
  }

  package var description: String {
    switch self {
    case .listeningStream(let family): "listening \(family) stream socket"
    case .listeningPackets(let family): "listening \(family) packet socket"
    case .stream(let family): "\(family) stream connection"
    case .packets(let family): "\(family) packet connection"
    case .datagram(let family): "\(family) datagram socket"
    case .otherSocket(let family): "\(family) socket"
    case .fifo: "FIFO"
    case .memoryFile(let isSealed): isSealed ? "sealed memory file" : "memory file"
    case .file: "file"
    case .directory: "directory"
    case .device: "device"
    case .other: "other descriptor"
    }
  }

  // MARK: Asking the kernel

  /// Looks at an open descriptor.
  ///
  /// - Throws: `system` when it is not open.
  package init(of number: Int32) throws(SystemdError) {
    var status = stat()
    guard fstat(number, &status) == 0 else {
      throw .system("look at file descriptor \(number)", errno: clinux_errno())
    }
    switch status.st_mode & mode_t(0o170000) {  // S_IFMT
    case mode_t(0o140000): self = try DescriptorKind.socket(number)
    case mode_t(0o010000): self = .fifo
    case mode_t(0o040000): self = .directory
    case mode_t(0o020000), mode_t(0o060000): self = .device
    case mode_t(0o100000):
      let seals = clinux_seals(number)
      // Only files of memory have seals, and one from memfd_create(2) has no link in any directory.
      guard seals >= 0, status.st_nlink == 0 else {
        self = .file
        return
      }
      let fixed = CLINUX_SEALS_FIXED
      self = .memoryFile(isSealed: seals & fixed == fixed)
    default: self = .other
    }
  }

  private static func socket(_ number: Int32) throws(SystemdError) -> DescriptorKind {
    let family = Family(try option(SO_DOMAIN, of: number))
    let isListening = try option(SO_ACCEPTCONN, of: number) != 0
    switch try option(SO_TYPE, of: number) {
    case CLINUX_SOCK_STREAM: return isListening ? .listeningStream(family) : .stream(family)
    case CLINUX_SOCK_SEQPACKET: return isListening ? .listeningPackets(family) : .packets(family)
    case CLINUX_SOCK_DGRAM: return .datagram(family)
    default: return .otherSocket(family)
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
