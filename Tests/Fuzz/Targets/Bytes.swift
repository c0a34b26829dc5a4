// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// Numbers and kinds of bytes, on which most parsers are built.
  static let bytes = FuzzTarget(name: "bytes") { input in
    let text = input.all()
    checkNumber(text, Int32.self)
    checkNumber(text, UInt64.self)
    checkNumber(text, Int8.self)
    for byte in text {
      let character = Character(Unicode.Scalar(byte))
      let isASCII = byte < 0x80
      require(byte.isDigit == (isASCII && character.isWholeNumber), "\(byte) as a digit")
      require(byte.isLetter == (isASCII && character.isLetter), "\(byte) as a letter")
      require(byte.isUppercase == (isASCII && character.isUppercase), "\(byte) as upper case")
      require(byte.isHexDigit == (isASCII && character.isHexDigit), "\(byte) in hexadecimal")
      let category = Unicode.Scalar(byte).properties.generalCategory
      require(byte.isControl == (isASCII && category == .control), "\(byte) as a control")
    }
  }

  private static func checkNumber<Number: FixedWidthInteger>(_ text: [UInt8], _: Number.Type) {
    let expected = normalDigits(text).flatMap { Number($0) }
    let number = decimal(text, as: Number.self)
    require(number == expected, "\(number as Any) of \(text)")
  }
}
