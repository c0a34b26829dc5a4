// SPDX-License-Identifier: Apache-2.0
/// Functions that escape text of unknown origin, such as an error's, to make it safe on a terminal and in a log.
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
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      // A joiner after an escaped character has nothing to join.
      if isShown(scalar, after: result.unicodeScalars.last ?? " ") {
        result.unicodeScalars.append(scalar)
        continue
      }
      switch scalar {
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      default: result += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    return result
  }

  /// The same for a text of any length: beyond `limit` characters, its beginning, "…" and its last `end` characters.
  package static func excerpt(_ text: String, limit: Int = 200, end: Int = 0) -> String {
    let scalars = text.unicodeScalars
    if scalars.prefix(limit).endIndex == scalars.endIndex { return line(text) }
    return line(String(scalars.prefix(limit - end))) + "…" + line(String(scalars.suffix(end)))
  }

  private static func isShown(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value >= 0x20 && scalar.value < 0x7f }
    switch scalar.value {
    case 0x200c, 0x200d: return !previous.isASCII
    // Code points that are not characters: systemd refuses a whole status with one of them.
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
