// SPDX-License-Identifier: Apache-2.0
/// Text of unknown origin, such as an error's, made safe to show on a terminal and in a log.
///
/// ```swift
/// let answer = "refused\n<0>all is well\u{1b}[2J"
/// print("could not connect: \(VisibleText.line(answer))")
/// // could not connect: refused\n<0>all is well\u{1b}[2J
/// ```
///
/// Line breaks could pass for another entry of a log, escape sequences reach the terminal of whoever reads it, and the
/// controls of text direction and zero width show something other than what is there. They are written as in a Swift
/// literal: `\n`, `\t`, `\u{1b}`. Everything else stays, a backslash too, so escaping twice changes nothing; escaped
/// text is for people, and not to be parsed.
public enum VisibleText {
  /// The text on one line: every control character, line separator and invisible format character is escaped.
  ///
  /// Joiners (U+200C and U+200D) stay behind a character that is not ASCII, where emoji and several scripts need them.
  public static func line(_ text: String) -> String {
    escaping(text) { _ in false }
  }

  /// The text on the lines it has: as ``line(_:)``, but newlines and tabs stay.
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
        // After what is shown of the one before: a joiner behind an escaped one has nothing to join.
        append(scalar, after: result.unicodeScalars.last ?? " ", to: &result)
      }
    }
    return result
  }

  /// Appends one part of a text that ends up on one line.
  package static func append(
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
