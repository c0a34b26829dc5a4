import DaemonSystemd

// Text in columns of a terminal.
extension String {
  /// With what moves the cursor, ends a line or changes the direction of text escaped (``VisibleText``), and each
  /// segment of spaces as one.
  var onOneLine: String {
    if isPlain { return self }
    var text = ""
    var previous: Unicode.Scalar = " "
    var count = 0
    for scalar in unicodeScalars {
      // What is never shown need not be looked at.
      if count == 4000 { break }
      count += 1
      let shown = scalar.properties.generalCategory == .spaceSeparator ? " " : scalar
      if shown != " " || previous != " " { VisibleText.append(shown, after: previous, to: &text) }
      previous = shown
    }
    if previous == " ", text.last == " " { text.removeLast() }
    return text
  }

  /// Whether it is words of ASCII with single spaces between.
  private var isPlain: Bool {
    var last: UInt8 = 0x20
    for byte in utf8 {
      if byte < 0x20 || byte >= 0x7F || (byte == 0x20 && last == 0x20) { return false }
      last = byte
    }
    return last != 0x20
  }

  /// How many columns it takes.
  var columns: Int {
    var columns = 0
    for character in self { columns += character.columns }
    return columns
  }

  /// Its beginning, if it has more columns.
  func cut(to width: Int, with ellipsis: String) -> String {
    columns <= width ? self : prefix(of: width - ellipsis.count) + ellipsis
  }

  /// Its beginning and its end, if it has more columns: two names of a kind often differ there.
  func cutInside(to width: Int, with ellipsis: String) -> String {
    if columns <= width { return self }
    let room = max(0, width - ellipsis.count)
    return prefix(of: room - room / 2) + ellipsis + suffix(of: room / 2)
  }

  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - columns))
  }

  private func prefix(of width: Int) -> String {
    var (end, used) = (startIndex, 0)
    while end < endIndex {
      used += self[end].columns
      if used > width { break }
      end = index(after: end)
    }
    return String(self[..<end])
  }

  private func suffix(of width: Int) -> String {
    var (start, used) = (endIndex, 0)
    while start > startIndex {
      let before = index(before: start)
      used += self[before].columns
      if used > width { break }
      start = before
    }
    return String(self[start...])
  }
}

extension Character {
  /// Two for those of East Asia and pictures, as the first of its scalars says; more for one that is a heap of
  /// marks, so that a column is not of any size.
  fileprivate var columns: Int {
    let heap = unicodeScalars.count / 8
    return switch unicodeScalars[unicodeScalars.startIndex].value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
      0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
      0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      2 + heap
    default: 1 + heap
    }
  }
}
