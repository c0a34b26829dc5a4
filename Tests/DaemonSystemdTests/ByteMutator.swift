// SPDX-License-Identifier: Apache-2.0
import TestSupport

/// Makes inputs by changing valid ones a little: the same ones for the same seed, on every machine.
struct ByteMutator {
  private var random: SeededGenerator
  private let seeds: [[UInt8]]
  private let tokens: [[UInt8]]

  /// How many inputs a test tries: a million with `FUZZ_INPUTS=1000000`; fewer by default, since a debug build takes
  /// minutes for that.
  static let inputs = SeededGenerator.inputs(usual: 5_000)

  init(seed: UInt64, _ seeds: [String], tokens: [String] = []) {
    random = SeededGenerator(seed: SeededGenerator.chosen &+ seed)
    self.seeds = seeds.map { Array($0.utf8) }
    let always = [
      ":", "=", "\n", "\0", "/", "@", "-1", "+", " ", "0", "18446744073709551615", "ä", "\u{feff}",
      "%",
    ]
    self.tokens =
      (always + tokens + seeds).map { Array($0.utf8) } + [
        [0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80],
      ]
  }

  mutating func below(_ bound: Int) -> Int { random.below(bound) }

  /// A seed with up to four changes; sometimes none.
  mutating func bytes() -> [UInt8] {
    var bytes = seeds[below(seeds.count)]
    for _ in 0..<below(5) {
      let at = below(bytes.count + 1)
      switch below(6) {
      case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8(below(8))
      case 1 where at < bytes.count: bytes[at] = UInt8(below(256))
      case 2 where at < bytes.count: bytes.remove(at: at)
      case 3: bytes.removeSubrange(at..<min(bytes.count, at + below(8)))
      case 4: bytes.insert(contentsOf: bytes.prefix(below(64)), at: at)
      default: bytes.insert(contentsOf: tokens[below(tokens.count)], at: at)
      }
    }
    return bytes
  }

  /// As the environment is read: what is not UTF-8 is repaired.
  mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }
}
