// SPDX-License-Identifier: Apache-2.0
import CFuzz

/// The bytes of an input, read from the front: values that a target is tried with. At the end all of them are zero or
/// empty.
struct FuzzInput {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func bool() -> Bool { byte() & 1 == 1 }

  mutating func below(_ bound: Int) -> Int { Int(byte()) % bound }

  mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number {
    var number: Number = 0
    for _ in 0..<Number.bitWidth / 8 { number = number << 8 | Number(truncatingIfNeeded: byte()) }
    return number
  }

  /// Everything up to the next newline, which makes inputs that people can read and write.
  mutating func line() -> [UInt8] { part(endedBy: UInt8(ascii: "\n")) }

  mutating func lineText() -> String { String(decoding: line(), as: UTF8.self) }

  /// A command line, an argument a line, up to an empty one.
  mutating func arguments() -> [String] {
    var arguments: [String] = []
    while !isEmpty, arguments.count < 32 {
      let argument = lineText()
      if argument.isEmpty { break }
      arguments.append(argument)
    }
    return arguments
  }

  mutating func part(endedBy end: UInt8) -> [UInt8] {
    let part = rest.prefix { $0 != end }
    rest = rest.dropFirst(part.count + 1)
    return Array(part)
  }

  /// As many bytes as the next one says.
  mutating func counted() -> [UInt8] {
    let count = Int(byte())
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func countedText() -> String { String(decoding: counted(), as: UTF8.self) }

  mutating func all() -> [UInt8] {
    defer { rest = [] }
    return Array(rest)
  }

  mutating func allText() -> String { String(decoding: all(), as: UTF8.self) }
}

/// Digits without leading zeros; `nil` for what has anything else in it.
func normalDigits(_ text: some Collection<UInt8>) -> String? {
  guard !text.isEmpty, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  let rest = text.drop { $0 == 0x30 }
  return rest.isEmpty ? "0" : String(decoding: rest, as: UTF8.self)
}

/// The path of a file with these bytes, the same each time; `nil` when there are none.
func file(with bytes: [UInt8]) -> String? {
  fuzz_file(bytes, bytes.count).map { String(cString: $0) }
}
