// SPDX-License-Identifier: Apache-2.0
/// A notification message: its fields, checked and encoded.
package struct NotifyMessage {
  /// The `NAME=value` lines, with a line break after each but the last; at most `maximumSize` bytes.
  let bytes: [UInt8]

  /// The largest message that pid 1 reads (`PIPE_BUF`, since the protocol exists). It drops a longer one with all its
  /// fields, so a status is cut to fit.
  package static let maximumSize = 4096

  init(_ fields: [NotifyField]) throws(SystemdError) {
    guard !fields.isEmpty else {
      throw .invalidArgument("A notification needs at least one field.")
    }
    var names: Set<String> = []
    var bytes: [UInt8] = []
    for field in fields {
      for (name, value) in try field.lines() {
        guard names.insert(name).inserted else {
          throw .invalidArgument(
            "The notification has \(name)= twice; the service manager would use only one of them."
              + " Send two messages.")
        }
        if name != "STATUS" { bytes.append(contentsOf: "\(name)=\(Self.escaped(value))\n".utf8) }
      }
    }
    if names.contains("STOPPING"), names.contains("READY") || names.contains("RELOADING") {
      throw .invalidArgument("STOPPING=1 is final: READY=1 or RELOADING=1 can't go with it.")
    }
    for case .status(let text) in fields { try Self.append(status: text, to: &bytes) }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard bytes.count <= NotifyMessage.maximumSize else {
      throw .invalidArgument(
        "The notification has \(bytes.count) bytes; the service manager reads \(NotifyMessage.maximumSize) and drops"
          + " a longer one. Send its fields in several messages.")
    }
    self.bytes = bytes
  }

  /// Appends the status, which is the last field, cut to the room that is left.
  private static func append(status text: String, to bytes: inout [UInt8]) throws(SystemdError) {
    bytes.append(contentsOf: "STATUS=".utf8)
    let room = maximumSize - bytes.count
    // Bounded first: a long text need not be escaped whole.
    var line = VisibleText.line(String(text.unicodeScalars.prefix(max(room, 0))))
    line = escaped(line)
    while line.utf8.count > room, !line.isEmpty { line.unicodeScalars.removeLast() }
    // Not in the middle of an escape.
    if line.utf8.reversed().prefix(while: { $0 == UInt8(ascii: "\\") }).count % 2 == 1 {
      line.unicodeScalars.removeLast()
    }
    guard room >= 0, text.isEmpty || !line.isEmpty else {  // an empty one would clear the status
      throw .invalidArgument(
        "The other fields leave no room for STATUS=. Send it in a message of its own.")
    }
    bytes.append(contentsOf: line.utf8)
  }

  /// systemd reads a backslash as an escape, even before a line break, and drops a message that ends with one.
  private static func escaped(_ text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "\\")) else { return text }
    return String(
      String.UnicodeScalarView(text.unicodeScalars.flatMap { $0 == "\\" ? [$0, $0] : [$0] }))
  }

  // MARK: Messages with descriptors

  private init(_ text: String) { bytes = Array(text.utf8) }

  /// The message of a barrier (systemd 246), which has no other field.
  static let barrier = NotifyMessage("BARRIER=1")

  /// The message that stores the descriptor sent with it (systemd 219; 246 if it is not polled).
  static func storing(_ name: String, polled: Bool) throws(SystemdError) -> NotifyMessage {
    let name = escaped(try DescriptorName.checked(name))
    return NotifyMessage("FDSTORE=1\nFDNAME=\(name)" + (polled ? "" : "\nFDPOLL=0"))
  }

  /// The message that removes all stored descriptors of a name (systemd 236).
  static func removing(_ name: String) throws(SystemdError) -> NotifyMessage {
    NotifyMessage("FDSTOREREMOVE=1\nFDNAME=\(escaped(try DescriptorName.checked(name)))")
  }
}
