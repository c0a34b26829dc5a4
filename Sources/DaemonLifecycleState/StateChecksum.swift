// SPDX-License-Identifier: Apache-2.0
/// The checksum of a record, CRC-64/XZ: the polynomial of ECMA-182, reflected, with all ones as initial value and final
/// XOR.
///
/// It detects every burst of up to 64 wrong bits, and all but one in 2^64 of other errors. It does not protect from
/// forgery; the files' owner and permissions do.
struct StateChecksum {
  private static let polynomial: UInt64 = 0xc96c_5795_d787_0f42

  /// The effect of each byte on the remainder.
  private static let table = (0..<256).map { byte in
    (0..<8).reduce(UInt64(byte)) { value, _ in
      value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
    }
  }

  private var remainder = UInt64.max

  var value: UInt64 { ~remainder }

  mutating func update(_ bytes: ArraySlice<UInt8>) {
    // Pointers, since without optimisation a checked subscript for each byte takes as long as the disk. All accesses
    // are in bounds: the index into the table is one byte.
    StateChecksum.table.withUnsafeBufferPointer { table in
      bytes.withUnsafeBufferPointer { bytes in
        remainder = bytes.reduce(remainder) { table[Int(($0 ^ UInt64($1)) & 0xff)] ^ $0 >> 8 }
      }
    }
  }
}
