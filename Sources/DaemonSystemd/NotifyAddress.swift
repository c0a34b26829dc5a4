// SPDX-License-Identifier: Apache-2.0
/// The address of notifications, as in `NOTIFY_SOCKET`.
struct NotifyAddress: Sendable, Hashable {
  /// The path of a socket, or the name of an abstract one without its '@'.
  let name: String
  let isAbstract: Bool

  /// - Throws: `malformedVariable` for a text that is no address.
  init(_ text: String) throws(SystemdError) {
    func malformed(_ reason: String) -> SystemdError {
      .malformedVariable(name: "NOTIFY_SOCKET", value: text, reason: reason)
    }
    let bytes = text.utf8
    if bytes.contains(0) { throw malformed("has a NUL byte in it") }
    switch bytes.first {
    case UInt8(ascii: "/"):
      // One byte is for the NUL that other readers of the path require.
      guard bytes.count < 108 else {
        throw malformed("is longer than the 107 bytes of a socket's path")
      }
      (name, isAbstract) = (text, false)
    case UInt8(ascii: "@"):
      guard bytes.count <= 108 else {
        throw malformed("is longer than the 107 bytes of an abstract name")
      }
      guard bytes.count > 1 else { throw malformed("has no name after the '@'") }
      // By bytes: `dropFirst` drops combining marks with the '@'.
      (name, isAbstract) = (String(text[bytes.index(after: bytes.startIndex)...]), true)
    default: throw malformed("begins neither with '/' nor '@'")
    }
  }
}
