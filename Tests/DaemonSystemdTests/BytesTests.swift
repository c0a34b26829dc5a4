// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

/// What each byte is, in ASCII.
@Suite struct BytesTests {
  @Test(arguments: 0...UInt8.max) func aByteIsWhatASCIISays(_ byte: UInt8) {
    let (digits, upper, lower) = (
      "0123456789".utf8, "ABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8,
      "abcdefghijklmnopqrstuvwxyz".utf8
    )
    #expect(byte.isDigit == digits.contains(byte))
    #expect(byte.isUppercase == upper.contains(byte))
    #expect(byte.isLetter == (upper.contains(byte) || lower.contains(byte)))
    #expect(byte.isControl == (byte == 127 || byte < 32))
  }

  @Test(
    arguments: [
      ("", nil), ("0", 0), ("007", 7), ("255", 255), ("256", nil), ("260", nil), ("1000", nil),
      ("+1", nil), ("-1", nil), (" 1", nil), ("1x", nil),
    ] as [(String, UInt8?)])
  func aDecimalNumberIsOfDigitsAloneAndFits(text: String, number: UInt8?) {
    #expect(decimal(text.utf8, as: UInt8.self) == number)
  }
}
