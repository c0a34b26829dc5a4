// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// The file format: what is written, and that no damage passes for a state.
@Suite("State: the file", .offThePool) struct StateRecordTests {
  private func checksum(_ text: String) -> UInt64 {
    var checksum = StateChecksum()
    checksum.update(Array(text.utf8)[...])
    return checksum.value
  }

  /// CRC-64/XZ's check value, and values that xz(1) writes.
  @Test func checksums() {
    #expect(checksum("123456789") == 0x995d_c9bb_df19_39fa)
    #expect(checksum("") == 0)
    #expect(checksum("a") == 0x3302_8477_2e65_2b05)
    var parts = StateChecksum()
    parts.update(Array("1234".utf8)[...])
    parts.update(Array("56789".utf8)[...])
    #expect(parts.value == 0x995d_c9bb_df19_39fa)
  }

  /// Fixed for ever: what a later release must be able to read.
  @Test func layout() {
    let file = StateRecord(version: 3, generation: 0x0102_0304, bytes: Array("abc".utf8)).encoded
    let header =
      Array("DLSTATE\n".utf8) + [1, 0, 0, 0] + [3, 0, 0, 0] + [4, 3, 2, 1, 0, 0, 0, 0]
      + [3, 0, 0, 0, 0, 0, 0, 0]
    #expect(Array(file.prefix(32)) == header)
    var checksum = StateChecksum()
    checksum.update((header + Array("abc".utf8))[...])
    #expect(
      Array(file[32..<40]) == (0..<8).map { UInt8(truncatingIfNeeded: checksum.value >> ($0 * 8)) })
    #expect(Array(file[40...]) == Array("abc".utf8))
  }

  /// Every bit, and every length.
  @Test func noDamagePasses() {
    let file = StateRecord(version: 1, generation: 7, bytes: Array("some state".utf8)).encoded
    for index in file.indices {
      for bit in 0..<8 {
        var damaged = file
        damaged[index] ^= 1 << bit
        guard case .broken = StateRecord.read(damaged) else {
          Issue.record("bit \(bit) of byte \(index)")
          continue
        }
      }
      guard case .broken = StateRecord.read(Array(file.prefix(index))) else {
        Issue.record("\(index) bytes")
        continue
      }
    }
    for more in [[0], [1, 2, 3]] as [[UInt8]] {
      #expect(
        StateRecord.read(file + more)
          == .wrongLength(file.count + more.count, payload: UInt64(file.count - 40)))
    }
  }

  /// Bytes that are anything, and files damaged at random.
  @Test func nothingCrashes() {
    var random = SeededGenerator(seed: 2)
    let file = StateRecord(version: 1, generation: 7, bytes: Array("some state".utf8)).encoded
    for _ in 0..<SeededGenerator.inputs(usual: 20_000) {
      var bytes = file
      for _ in 0...random.below(4) {
        switch random.below(3) {
        case 0: bytes[random.below(bytes.count)] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.removeLast(random.below(bytes.count))
        default:
          bytes += (0...random.below(9)).map { _ in [0, 0xff, 0x20].randomElement(using: &random)! }
        }
      }
      if bytes == file { continue }
      guard case .broken = StateRecord.read(bytes) else {
        Issue.record("\(bytes)")
        return
      }
    }
  }

  @Test func reasons() {
    let file = StateRecord(version: 1, generation: 7, bytes: Array("some state".utf8)).encoded
    #expect(StateRecord.read([]) == .broken("is empty"))
    #expect(StateRecord.read(Array("{}".utf8)) == .notAState)
    #expect(StateRecord.read([UInt8](repeating: 0, count: 100)) == .notAState)
    #expect(
      StateRecord.read(Array(file.prefix(20))) == .broken("has 20 bytes instead of 40"))
    #expect(
      StateRecord.read(Array(file.prefix(45))) == .broken("has 45 bytes instead of 50"))
    #expect(
      StateRecord.read(file.dropLast() + [0])
        == .broken("fails its checksum"))
  }

  /// With a checksum that fits, it is whole, and not ours to touch.
  @Test func aLaterFormatIsNotBroken() {
    var file = StateRecord(version: 1, generation: 7, bytes: Array("what it may be".utf8)).encoded
    file[8] = 2
    var checksum = StateChecksum()
    checksum.update(file[..<32])
    checksum.update(file[40...])
    for index in 0..<8 {
      file[32 + index] = UInt8(truncatingIfNeeded: checksum.value >> (index * 8))
    }
    #expect(StateRecord.read(file) == .newerFormat(2))
  }
}
