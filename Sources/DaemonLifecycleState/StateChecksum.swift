// SPDX-License-Identifier: Apache-2.0
/// The checksum of a record, CRC-64/XZ: the polynomial of ECMA-182, reflected, with all ones as initial value and final
/// XOR.
///
/// It detects every burst of up to 64 wrong bits, and all but one in 2^64 of other errors. It does not protect from
/// forgery; the files' owner and permissions do.
struct StateChecksum {
  private static let polynomial: UInt64 = 0xc96c_5795_d787_0f42

  /// Eight tables, one after another: the effect of each byte on the remainder when 0 to 7 others follow it.
  private static let tables = {
    var tables = (0..<256).map { byte in
      (0..<8).reduce(UInt64(byte)) { value, _ in
        value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
      }
    }
    for index in 256..<2048 {
      let value = tables[index - 256]
      tables.append(tables[Int(value & 0xff)] ^ value >> 8)
    }
    return tables
  }()

  private var remainder = UInt64.max

  var value: UInt64 { ~remainder }

  mutating func update(_ bytes: ArraySlice<UInt8>) {
    // Pointers, since without optimisation a checked subscript for each byte takes as long as the disk. All accesses
    // are in bounds: the index into each table is one byte.
    StateChecksum.tables.withUnsafeBufferPointer { tables in
      bytes.withUnsafeBytes { bytes in
        var value = remainder
        let whole = bytes.count & ~7
        for index in stride(from: 0, to: whole, by: 8) {
          value ^= UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          let low = tables[1792 + Int(value & 0xff)] ^ tables[1536 + Int(value >> 8 & 0xff)]
          let middle =
            tables[1280 + Int(value >> 16 & 0xff)] ^ tables[1024 + Int(value >> 24 & 0xff)]
          let next = tables[768 + Int(value >> 32 & 0xff)] ^ tables[512 + Int(value >> 40 & 0xff)]
          let high = tables[256 + Int(value >> 48 & 0xff)] ^ tables[Int(value >> 56)]
          value = low ^ middle ^ next ^ high
        }
        for byte in bytes[whole...] {
          value = tables[Int((value ^ UInt64(byte)) & 0xff)] ^ value >> 8
        }
        remainder = value
      }
    }
  }
}
