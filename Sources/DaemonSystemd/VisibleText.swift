// SPDX-License-Identifier: Apache-2.0
/// Functions that escape text of unknown origin, such as that of an error, so that it is safe on a terminal and in a
/// log.
///
/// ```swift
/// let answer = "refused\n<0>all is well\u{1b}[2J"
/// print("could not connect: \(VisibleText.line(answer))")
/// // could not connect: refused\n<0>all is well\u{1b}[2J
/// ```
///
/// Line breaks could fake another entry of a log, escape sequences could control the reader's terminal, and characters
/// of text direction or zero width could hide the real text. They are escaped as in a Swift literal: `\n`, `\t`,
/// `\u{1b}`. Everything else is kept, including a backslash, so escaping twice changes nothing. The result is for
/// people, not for parsing.
public enum VisibleText {
  /// Returns the text on one line: every control character, line separator and invisible format character is escaped.
  ///
  /// Joiners (U+200C and U+200D) are kept after a character that is not ASCII, where emoji and several scripts need
  /// them.
  public static func line(_ text: String) -> String {
    escaping(text) { _ in false }
  }

  /// Returns the text on its lines, escaped as by ``line(_:)``, except that newlines and tabs are kept.
  public static func lines(_ text: String) -> String {
    escaping(text) { $0 == "\n" || $0 == "\t" }
  }

  private static func escaping(
    _ text: String, except stays: (Unicode.Scalar) -> Bool
  ) -> String {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if stays(scalar) {
        result.unicodeScalars.append(scalar)
      } else {
        // A joiner after an escaped character has nothing to join.
        append(scalar, after: result.unicodeScalars.last ?? " ", to: &result)
      }
    }
    return result
  }

  /// Returns as many whole characters of ``line(_:)`` as fit, for a message of limited size.
  static func line(_ text: String, maximumSize: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var previous: Unicode.Scalar = " "
    for character in text {
      let start = bytes.count
      for scalar in character.unicodeScalars {
        var shown = ""
        append(scalar, after: previous, to: &shown)
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

  private static func append(
    _ scalar: Unicode.Scalar, after previous: Unicode.Scalar, to text: inout String
  ) {
    if isShown(scalar, after: previous) { return text.unicodeScalars.append(scalar) }
    switch scalar {
    case "\n": text += "\\n"
    case "\r": text += "\\r"
    case "\t": text += "\\t"
    default: text += "\\u{\(String(scalar.value, radix: 16))}"
    }
  }

  private static func isShown(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value >= 0x20 && scalar.value < 0x7f }
    switch scalar.value {
    case 0x200c, 0x200d: return !previous.isASCII
    // Code points that are not characters: systemd refuses a whole status for one.
    case 0xfdd0...0xfdef: return false
    case let value where value & 0xfffe == 0xfffe: return false
    default: break
    }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: return false
    default: return true
    }
  }
}
