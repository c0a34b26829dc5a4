// Text in columns of a terminal.
extension String {
  /// Without what moves the cursor, ends a line or changes the direction of text: each stretch of that, and of
  /// spaces, is a space.
  var onOneLine: String {
    if utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return self }
    var text = String.UnicodeScalarView()
    var needsSpace = false
    // What is never shown need not be looked at.
    for scalar in unicodeScalars.prefix(4000) {
      if scalar.isShown {
        if needsSpace, !text.isEmpty { text.append(" ") }
        needsSpace = false
        text.append(scalar)
      } else {
        needsSpace = true
      }
    }
    return String(text)
  }

  /// How many columns it takes.
  var columns: Int {
    if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return utf8.count }
    return reduce(0) { $0 + $1.columns }
  }

  /// Its beginning, if it has more columns.
  func cut(to width: Int, with ellipsis: String) -> String {
    if columns <= width { return self }
    return prefix(of: width - ellipsis.count) + ellipsis
  }

  /// Its beginning and its end, if it has more columns: two names of a kind often differ there.
  func cutInside(to width: Int, with ellipsis: String) -> String {
    if columns <= width { return self }
    let room = max(0, width - ellipsis.count)
    let end = String(String(reversed()).prefix(of: room / 2).reversed())
    return prefix(of: room - room / 2) + ellipsis + end
  }

  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - columns))
  }

  private func prefix(of width: Int) -> String {
    var used = 0
    return String(
      prefix { character in
        used += character.columns
        return used <= width
      })
  }
}

extension Character {
  /// Two for those of East Asia and pictures; a character that combines several scalars counts as its first.
  fileprivate var columns: Int {
    switch unicodeScalars.first?.value ?? 0 {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
      0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
      0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      2
    default: 1
    }
  }
}

extension Unicode.Scalar {
  fileprivate var isShown: Bool {
    if isASCII { return value > 0x20 && value < 0x7F }
    switch properties.generalCategory {
    // A joiner is a format too, and part of what one sees.
    case .format: return value == 0x200D || value == 0x200C
    case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator, .surrogate: return false
    default: return true
    }
  }
}
