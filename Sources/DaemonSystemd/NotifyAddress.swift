/// Where notifications go: what `NOTIFY_SOCKET` says.
enum NotifyAddress: Sendable, Hashable {
  /// A socket in the file system.
  case path(String)
  /// A socket without a file; the name without its '@'.
  case abstract(String)
  /// A socket of the host of a virtual machine. Without a kind, datagrams, sequenced packets and a stream are tried.
  case vsock(cid: UInt32, port: UInt32, kind: VsockKind?)

  /// On this machine: then one datagram socket is enough for all messages.
  var isLocal: Bool {
    switch self {
    case .path, .abstract: true
    case .vsock: false
    }
  }

  enum VsockKind: String, Sendable, CaseIterable {
    case dgram, seqpacket, stream
  }

  /// Reads it, or says in words that follow "which" why it is none.
  static func parse(_ text: String) -> Result<NotifyAddress, Reason> {
    let bytes = text.utf8
    if bytes.contains(0) { return .failure("has a NUL byte in it") }
    switch bytes.first {
    case UInt8(ascii: "/"):
      // One byte is for the NUL that other readers of the path need.
      guard bytes.count < 108 else {
        return .failure("is longer than the 107 bytes of a socket's path")
      }
      return .success(.path(text))
    case UInt8(ascii: "@"):
      guard bytes.count <= 108 else {
        return .failure("is longer than the 107 bytes of an abstract name")
      }
      guard bytes.count > 1 else { return .failure("has no name after the '@'") }
      return .success(.abstract(String(text.dropFirstByte)))
    default:
      return parseVsock(text)
    }
  }

  private static func parseVsock(_ text: String) -> Result<NotifyAddress, Reason> {
    let parts = Array(text.utf8).split(
      separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    let kind: VsockKind?
    switch String(decoding: parts[0], as: UTF8.self) {
    case "vsock": kind = nil
    case "vsock-dgram": kind = .dgram
    case "vsock-seqpacket": kind = .seqpacket
    case "vsock-stream": kind = .stream
    default: return .failure("begins neither with '/' nor '@' nor vsock:")
    }
    guard parts.count == 3 else { return .failure("is not of the form vsock:CID:PORT") }
    guard let cid = decimal(parts[1], as: UInt32.self), cid != .max else {
      return .failure("has no context id (CID) that is a number below 4294967295")
    }
    guard let port = decimal(parts[2], as: UInt32.self), port != .max else {
      return .failure("has no port that is a number below 4294967295")
    }
    return .success(.vsock(cid: cid, port: port, kind: kind))
  }
}

/// Why a value was refused, in words that follow "which".
struct Reason: Error, ExpressibleByStringInterpolation {
  let text: String
  init(stringLiteral value: String) { text = value }
}

extension String {
  /// Without its first byte, which must be a character of its own. (`dropFirst` drops combining marks with it.)
  fileprivate var dropFirstByte: Substring { self[utf8.index(after: utf8.startIndex)...] }
}
