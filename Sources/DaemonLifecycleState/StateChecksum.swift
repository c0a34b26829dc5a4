// SPDX-License-Identifier: Apache-2.0
/// The checksum of a record, CRC-64/XZ: the polynomial of ECMA-182, reflected, with all ones as initial value and final
/// XOR.
///
/// It detects every burst of up to 64 wrong bits, and all but one in 2^64 of other errors. It does not protect from
/// forgery; the files' owner and permissions do.
struct StateChecksum {
  private static let polynomial: UInt64 = 0xc96c_5795_d787_0f42

  /// The effect of a byte on the remainder when `n` more bytes follow it in a block: table `n`, 256 entries each.
  private static let tables: [UInt64] = {
    var tables = (0..<256).map { byte in
      (0..<8).reduce(UInt64(byte)) { value, _ in
        value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
      }
    }
    for index in 256..<block * 256 {
      let value = tables[index - 256]
      tables.append(tables[Int(value & 0xff)] ^ value >> 8)
    }
    return tables
  }()
  /// The number of bytes that are looked up at a time. Sixteen lookups do not depend on each other, which is four times
  /// as fast.
  private static let block = 16

  private var remainder = UInt64.max

  var value: UInt64 { ~remainder }

  mutating func update(_ bytes: ArraySlice<UInt8>) {
    var remainder = remainder
    // Pointers, since without optimisation a checked subscript for each byte takes as long as the disk. All accesses
    // are in bounds: an index into the tables is below 256 and its table's number below `block`.
    StateChecksum.tables.withUnsafeBufferPointer { tables in
      bytes.withUnsafeBytes { bytes in
        var index = 0
        while bytes.count - index >= Self.block {
          let first =
            remainder
            ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          let second = UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self))
          remainder = 0
          for byte in 0..<8 {
            let shift = UInt64(byte) * 8
            remainder ^= tables[(15 - byte) << 8 | Int(first >> shift & 0xff)]
            remainder ^= tables[(7 - byte) << 8 | Int(second >> shift & 0xff)]
          }
          index += Self.block
        }
        while index < bytes.count {
          remainder = tables[Int(remainder & 0xff) ^ Int(bytes[index])] ^ remainder >> 8
          index += 1
        }
      }
    }
    self.remainder = remainder
  }
}
