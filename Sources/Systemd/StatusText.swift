/// Text for people made fit for `STATUS=`: one line of what systemd takes for valid UTF-8.
package enum StatusText {
  /// What systemd keeps of a status.
  package static let maximumSize = 16 * 1024

  static func string(_ text: String) -> String {
    String(decoding: line(text, maximumSize: maximumSize), as: UTF8.self)
  }

  /// As many whole characters as fit.
  static func line(_ text: String, maximumSize: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for character in text {
      let start = bytes.count
      for scalar in character.unicodeScalars where scalar != "\r" || character == "\r" {
        bytes.append(contentsOf: replacement(for: scalar).utf8)
        // A single character may be longer than any message: then it is cut between its parts.
        if bytes.count > maximumSize { break }
      }
      if bytes.count > maximumSize {
        bytes.removeSubrange((start > 0 ? start : wholeScalars(bytes, maximumSize))...)
        break
      }
    }
    return bytes
  }

  private static func wholeScalars(_ bytes: [UInt8], _ limit: Int) -> Int {
    var end = limit
    while end > 0, bytes[end] & 0xc0 == 0x80 { end -= 1 }
    return end
  }

  private static func replacement(for scalar: Unicode.Scalar) -> Unicode.Scalar {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029: " "
    // Systemd refuses a whole status for one of these code points, which are not characters.
    case 0xfdd0...0xfdef: "\u{fffd}"
    case let value where value & 0xfffe == 0xfffe: "\u{fffd}"
    default: scalar
    }
  }
}
