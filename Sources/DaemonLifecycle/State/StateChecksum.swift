/// CRC-64/XZ: the polynomial of ECMA-182, reflected, all ones before and after.
///
/// It finds every burst of up to 64 wrong bits, and of all other damage all but one in 2^64. It is no protection from
/// somebody who forges a file: that is what the owner and the permissions are for.
struct StateChecksum {
  private static let polynomial: UInt64 = 0xc96c_5795_d787_0f42

  /// What one byte does to the remainder.
  private static let table: [UInt64] = (0..<256).map { byte in
    (0..<8).reduce(UInt64(byte)) { value, _ in
      value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
    }
  }

  private var remainder = UInt64.max

  var value: UInt64 { ~remainder }

  mutating func update(_ bytes: ArraySlice<UInt8>) {
    var remainder = remainder
    // Pointers, since without optimisation a checked subscript a byte takes as long as the disk. Both stay within.
    StateChecksum.table.withUnsafeBufferPointer { table in
      bytes.withUnsafeBufferPointer { bytes in
        for byte in bytes {
          remainder = table[Int(truncatingIfNeeded: remainder) & 0xff ^ Int(byte)] ^ remainder >> 8
        }
      }
    }
    self.remainder = remainder
  }
}
