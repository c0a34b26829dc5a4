// SPDX-License-Identifier: Apache-2.0
import CLinux

/// SplitMix64: the same numbers for the same seed, on every machine.
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }

  package mutating func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &self) < percent
  }

  /// Below `bound`; uneven by less than a billionth, and fast without optimisation.
  package mutating func below(_ bound: Int) -> Int { Int(next() >> 33) % bound }

  /// What SEED says, or 0: where the tests begin that draw other inputs each night, and the same for the same seed.
  package static var chosen: UInt64 {
    getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? 0
  }

  /// How many inputs a generator makes: what FUZZ_INPUTS says (a million in CI, in an optimised build), or
  /// `usual`.
  package static func inputs(usual: Int) -> Int {
    getenv("FUZZ_INPUTS").flatMap { Int(String(cString: $0)) } ?? usual
  }
}
