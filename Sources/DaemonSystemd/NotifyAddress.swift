/// Where notifications go: what `NOTIFY_SOCKET` says.
enum NotifyAddress: Sendable, Hashable {
  /// A socket in the file system.
  case path(String)
  /// A socket without a file; the name without its '@'.
  case abstract(String)

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
      return .failure("begins neither with '/' nor '@'")
    }
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
