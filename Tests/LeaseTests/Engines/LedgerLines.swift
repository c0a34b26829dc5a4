// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// The ledger of a pair, as far as it was read.
struct LedgerLines {
  struct Line: Equatable {
    let number: Int
    let name: String
    let token: Int
    /// Milliseconds since 1970.
    let time: Int

    init?(_ text: String) {
      let words = text.split(separator: " ", omittingEmptySubsequences: false)
      guard words.count == 4, let number = Int(words[0]), let token = Int(words[2]),
        let time = Int(words[3])
      else { return nil }
      (self.number, name, self.token, self.time) = (number, String(words[1]), token, time)
    }
  }

  let path: String
  private(set) var all: [Line] = []
  private var offset = 0

  init(_ path: String) { self.path = path }

  /// Reads on, up to the end of a line: half a line may be taken back.
  mutating func update() throws {
    guard let file = FileHandle(forReadingAtPath: path) else { return }
    defer { try? file.close() }
    try file.seek(toOffset: UInt64(offset))
    let bytes = try file.readToEnd() ?? Data()
    guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return }
    let whole = bytes[...end]
    offset += whole.count
    for text in String(decoding: whole.dropLast(), as: UTF8.self).components(separatedBy: "\n") {
      guard let line = Line(text) else { throw TestFailure("a line of the ledger is \(text)") }
      all.append(line)
    }
  }

  /// What two writers at once, or one that had lost the lease, would leave.
  static func problems(_ lines: [Line]) -> [String] {
    var problems = lines.first.map { $0.number == 1 ? [] : ["it begins with \($0)"] } ?? []
    for (line, next) in zip(lines, lines.dropFirst()) {
      let isWrong =
        next.number != line.number + 1 || next.token < line.token || next.time < line.time
        || next.token == line.token && next.name != line.name
      if isWrong { problems.append("\(next) after \(line)") }
    }
    return problems
  }
}
