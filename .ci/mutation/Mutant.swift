// SPDX-License-Identifier: Apache-2.0
/// One change to a source file that its tests should detect, behind a switch.
struct Mutant {
  /// A part of what the switch consists of, at offsets of the original file's UTF-8.
  struct Edit {
    /// What the text takes the place of; empty where it is inserted.
    let extent: Range<Int>
    let text: String
    /// Where several begin at one offset: ends before beginnings, inner ends first, outer beginnings first.
    let order: (Int, Int)

    static func before(_ extent: Range<Int>, _ text: String) -> Edit {
      Edit(extent.lowerBound..<extent.lowerBound, text, (1, -extent.upperBound))
    }
    static func after(_ extent: Range<Int>, _ text: String) -> Edit {
      Edit(extent.upperBound..<extent.upperBound, text, (0, -extent.lowerBound))
    }
    static func instead(_ extent: Range<Int>, _ text: String) -> Edit {
      Edit(extent, text, (2, 0))
    }

    private init(_ extent: Range<Int>, _ text: String, _ order: (Int, Int)) {
      (self.extent, self.text, self.order) = (extent, text, order)
    }
  }

  /// The value of the switch.
  let number: Int
  let path: String
  let line: Int
  /// The declaration that it is in.
  let place: String
  /// What is changed, and into what.
  let change: String
  /// What it is part of when the compiler complains about a line without mutants.
  let declaration: Range<Int>
  let edits: [Edit]

  /// What it is recognised by, wherever in the file its line moves to.
  var key: String { "\(path): \(place): \(change)" }
  var description: String { "\(path):\(line): \(place): \(change)" }
}

/// A source file, and what is tried with it.
struct MutatedFile {
  let path: String
  let text: [UInt8]
  var mutants: [Mutant]

  /// The file with the switches of all its mutants. It has as many lines as the original one.
  var instrumented: [UInt8] {
    var result: [UInt8] = []
    var offset = 0
    // Where one node has several mutants, the first one's switch is the outermost.
    let edits = mutants.flatMap { mutant in
      mutant.edits.map { ($0, number: $0.order.0 == 0 ? -mutant.number : mutant.number) }
    }
    let sorted = edits.sorted {
      ($0.0.extent.lowerBound, $0.0.order.0, $0.0.order.1, $0.number) < (
        $1.0.extent.lowerBound, $1.0.order.0, $1.0.order.1, $1.number
      )
    }
    for (edit, _) in sorted {
      result += text[offset..<max(offset, edit.extent.lowerBound)] + Array(edit.text.utf8)
      offset = max(offset, edit.extent.upperBound)
    }
    return result + text[offset...]
  }

  /// The mutants that an error of the compiler is about: the last switch before it on its line, else all on the line, else
  /// what is dropped in the declaration around it.
  func culprits(_ line: Int, _ column: Int) -> Set<Int> {
    let lines = instrumented.split(separator: 0x0a, omittingEmptySubsequences: false)
    guard line <= lines.count else { return [] }
    let known = Set(mutants.map(\.number))
    let code = String(decoding: lines[line - 1], as: UTF8.self)
    let found = code.matches(of: #/mutant[A-Za-z]+\((\d+)/#).compactMap { match in
      Int(match.1).map {
        ($0, offset: code.utf8.distance(from: code.startIndex, to: match.range.lowerBound))
      }
    }.filter { known.contains($0.0) }
    if let last = found.last(where: { $0.offset < column }) { return [last.0] }
    if !found.isEmpty { return Set(found.map(\.0)) }
    let before = text.split(separator: 0x0a, omittingEmptySubsequences: false).prefix(line - 1)
    let offset = before.reduce(0) { $0 + $1.count + 1 }
    let around = mutants.filter {
      $0.declaration.lowerBound <= offset && offset <= $0.declaration.upperBound + 1
        && $0.change.hasPrefix("drop")
    }
    return Set(around.map(\.number))
  }
}

/// What the switches call, for each module a file of its own. The number of the mutant that is on is read once.
let switches = """
  import CLinux

  private let chosen = getenv("MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

  func mutantIsNot(_ number: Int) -> Bool { chosen != number }
  func mutantNot(_ number: Int, _ value: Bool) -> Bool { value != (chosen == number) }
  func mutantComparison<T>(
    _ number: Int, _ a: T, _ its: (T, T) -> Bool, _ other: (T, T) -> Bool, _ b: T
  ) -> Bool {
    chosen == number ? other(a, b) : its(a, b)
  }
  func mutantJunction(
    _ number: Int, _ a: Bool, isAnd: Bool, _ b: @autoclosure () throws -> Bool
  ) rethrows -> Bool {
    isAnd != (chosen == number) ? try a && b() : try a || b()
  }
  func mutantLiteral<T: ExpressibleByIntegerLiteral>(_ number: Int, _ value: T, _ other: T) -> T {
    chosen == number ? other : value
  }
  """
