// SPDX-License-Identifier: Apache-2.0
/// The contents of a state's file: a header of 40 bytes, then the bytes that were saved.
///
/// ```text
/// offset  bytes  what, little-endian
///      0      8  "DLSTATE\n"
///      8      4  format, 1
///     12      4  the program's version of the state
///     16      8  generation: 1 for the first save, and more for each later one, modulo 2^64
///     24      8  how many bytes follow the header
///     32      8  CRC-64/XZ of the 32 bytes before and the bytes after it
/// ```
///
/// Any later format keeps the magic, the format's number and the place and meaning of the checksum, so that an intact
/// file that is too new can be distinguished from a broken one.
struct StateRecord: Equatable {
  static let magic = Array("DLSTATE\n".utf8)
  static let format: UInt32 = 1
  static let headerSize = 40
  private static let checksumOffset = 32

  let version: UInt32
  let generation: UInt64
  let bytes: [UInt8]

  /// Whether it was saved after the other one. The distance modulo 2^64 decides, so that each generation has a next
  /// one, even that of a file made by hand.
  func isNewer(than other: StateRecord) -> Bool {
    Int64(bitPattern: generation &- other.generation) > 0
  }

  // MARK: Encode

  var encoded: [UInt8] { header + bytes }

  var header: [UInt8] {
    var file = StateRecord.magic
    file.append(littleEndian: StateRecord.format)
    file.append(littleEndian: version)
    file.append(littleEndian: generation)
    file.append(littleEndian: UInt64(bytes.count))
    file.append(littleEndian: StateRecord.checksum(header: file[...], bytes[...]))
    return file
  }

  private static func checksum(
    header: ArraySlice<UInt8>, _ bytes: ArraySlice<UInt8>
  ) -> UInt64 {
    var checksum = StateChecksum()
    checksum.update(header)
    checksum.update(bytes)
    return checksum.value
  }

  // MARK: Decode

  enum Reading: Equatable {
    case whole(StateRecord)
    /// Intact, but of the format of a later release.
    case newerFormat(UInt32)
    /// Broken: the problem in words that follow the file's path.
    case broken(String)

    static let notAState = Reading.broken("is not a state")

    /// The result for a file that is shorter or longer than its header says; the header may be arbitrary.
    static func wrongLength(_ found: Int, payload: UInt64) -> Reading {
      let expected = Int(min(payload, UInt64(Int.max - headerSize))) + headerSize
      return .broken("has \(found) bytes instead of \(expected)")
    }
  }

  /// The length in the header, before the checksum is verified; `nil` when it is no header.
  static func length(inHeader header: [UInt8]) -> UInt64? {
    guard header.count >= headerSize, header.starts(with: magic) else { return nil }
    return header.littleEndian(at: 24)
  }

  static func read(_ file: [UInt8]) -> Reading {
    // As after a power cut for a file that was not synced.
    if file.isEmpty { return .broken("is empty") }
    guard file.starts(with: magic.prefix(file.count)) else { return .notAState }
    guard file.count >= headerSize else { return .wrongLength(file.count, payload: 0) }
    let length: UInt64 = file.littleEndian(at: 24)
    let payload = file[headerSize...]
    let checksum = checksum(header: file[..<checksumOffset], payload)
    guard file.littleEndian(at: checksumOffset) == checksum else {
      return length == UInt64(payload.count)
        ? .broken("fails its checksum")
        : .wrongLength(file.count, payload: length)
    }
    let format: UInt32 = file.littleEndian(at: 8)
    guard format <= StateRecord.format else { return .newerFormat(format) }
    // With a matching checksum, the file was made by hand.
    guard format == StateRecord.format, length == UInt64(payload.count) else { return .notAState }
    return .whole(
      StateRecord(
        version: file.littleEndian(at: 12), generation: file.littleEndian(at: 16),
        bytes: Array(payload)))
  }
}

extension [UInt8] {
  fileprivate mutating func append(littleEndian number: some FixedWidthInteger) {
    for shift in stride(from: 0, to: type(of: number).bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  /// Reads a number; the caller has checked the length.
  fileprivate func littleEndian<Number: FixedWidthInteger>(at offset: Int) -> Number {
    self[offset..<offset + Number.bitWidth / 8].reversed().reduce(0) { $0 << 8 | Number($1) }
  }
}
