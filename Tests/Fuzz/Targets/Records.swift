// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycleState

extension FuzzTarget {
  /// Files of a state: what is read as whole is exactly what is written for it, whatever was damaged is not whole.
  static let records = FuzzTarget(name: "records") { input in
    switch input.below(4) {
    case 0: checkFile(input.all())
    case 1: checkRoundTrip(&input)
    case 2: checkFile(made(&input))
    // Cut off, or with something behind it.
    default:
      let count = Int(input.number(UInt16.self) % 64)
      let file = made(&input)
      checkFile(Array(file.prefix(count)))
      checkFile(file + Array(repeating: 0, count: count))
    }
  }

  private static func checkFile(_ file: [UInt8]) {
    let length = StateRecord.length(inHeader: file)
    switch StateRecord.read(file) {
    case .whole(let record):
      require(record.encoded == file, "\(record) was read of \(file)")
      require(!record.isNewer(than: record), "\(record) is newer than itself")
      require(length == UInt64(record.bytes.count), "\(length as Any) bytes of \(file)")
    case .newerFormat(let format):
      require(format > StateRecord.format && length != nil, "\(format) is not newer")
    case .broken(let damage): require(damage.utf8.count > 5, "\"\(damage)\" says nothing")
    }
  }

  private static func checkRoundTrip(_ input: inout FuzzInput) {
    let bit = input.number(UInt16.self)
    let (version, generation) = (input.number(UInt32.self), input.number(UInt64.self))
    guard generation < .max else { return }
    let record = StateRecord(version: version, generation: generation, bytes: input.all())
    var file = record.encoded
    require(StateRecord.read(file) == .whole(record), "\(record) is not read again")
    file[Int(bit >> 3) % file.count] ^= 1 << UInt8(bit & 7)
    guard case .broken = StateRecord.read(file) else {
      return require(false, "the damage at \(bit) of \(file) is not found")
    }
  }

  /// A file whose header says anything, under a checksum that fits.
  private static func made(_ input: inout FuzzInput) -> [UInt8] {
    var header = StateRecord.magic
    let format = UInt32(input.byte())
    let version = input.number(UInt32.self)
    let generation = input.bool() ? input.number(UInt64.self) : .max
    let length = input.bool() ? input.number(UInt64.self) : nil
    let bytes = input.all()
    append(format, to: &header)
    append(version, to: &header)
    append(generation, to: &header)
    append(length ?? UInt64(bytes.count), to: &header)
    append(crc(header + bytes), to: &header)
    return header + bytes
  }

  /// Its bytes, the lowest first.
  private static func append<Number: FixedWidthInteger>(_ number: Number, to file: inout [UInt8]) {
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
      file.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  /// CRC-64/XZ bit by bit, to judge the tables by.
  private static func crc(_ bytes: [UInt8]) -> UInt64 {
    var remainder = UInt64.max
    for byte in bytes {
      remainder ^= UInt64(byte)
      for _ in 0..<8 {
        let half = remainder >> 1
        remainder = remainder & 1 == 0 ? half : half ^ 0xc96c_5795_d787_0f42
      }
    }
    return ~remainder
  }
}
