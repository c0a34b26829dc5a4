// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycleState

/// Saves state after state in the directory given until it is killed, and tells of each save that has returned: its number,
/// as 8 bytes on standard output.
@main struct ProbeState {
  static func main() throws {
    let store = try StateStore(directory: CommandLine.arguments[1])
    var number = try store.load().map { try parse($0.bytes) } ?? 0
    while true {
      number += 1
      try store.save(content(number))
      var told = number
      guard withUnsafeBytes(of: &told, { write(1, $0.baseAddress, 8) }) == 8 else { exit(2) }
    }
  }

  /// Its number, then bytes that follow from it, of lengths that go up and down.
  static func content(_ number: UInt64) -> [UInt8] {
    var bytes = Array(String(number).utf8) + [0x0a]
    let count = Int(number &* 2_654_435_761 % 20_000)
    bytes.reserveCapacity(bytes.count + count)
    for index in 0..<count {
      bytes.append(UInt8(truncatingIfNeeded: UInt64(index) &* 31 &+ number))
    }
    return bytes
  }

  static func parse(_ bytes: [UInt8]) throws -> UInt64 {
    let line = String(decoding: bytes.prefix { $0 != 0x0a }, as: UTF8.self)
    guard let number = UInt64(line), content(number) == bytes else { throw Corrupt() }
    return number
  }

  struct Corrupt: Error {}
}
