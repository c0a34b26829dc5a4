// SPDX-License-Identifier: Apache-2.0
/// Text for people, prepared for `STATUS=`: one line of what systemd accepts as UTF-8.
package enum StatusText {
  /// The size to which systemd cuts a status.
  package static let maximumSize = 16 * 1024

  /// Returns as many whole characters as fit, escaped by ``VisibleText/line(_:)``.
  static func line(_ text: String, maximumSize: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var previous: Unicode.Scalar = " "
    for character in text {
      let start = bytes.count
      for scalar in character.unicodeScalars {
        var shown = ""
        VisibleText.append(scalar, after: previous, to: &shown)
        previous = shown.unicodeScalars.last ?? previous
        // A single character may be longer than any message; it is then cut between its parts.
        if start == 0, bytes.count + shown.utf8.count > maximumSize { return bytes }
        bytes.append(contentsOf: shown.utf8)
        if bytes.count > maximumSize {
          bytes.removeSubrange(start...)
          return bytes
        }
      }
    }
    return bytes
  }
}
