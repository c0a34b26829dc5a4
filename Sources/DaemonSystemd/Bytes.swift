// SPDX-License-Identifier: Apache-2.0
extension UInt8 {
  package var isDigit: Bool { self >= 0x30 && self <= 0x39 }
  package var isUppercase: Bool { self >= 0x41 && self <= 0x5a }
  package var isLetter: Bool { isUppercase || self >= 0x61 && self <= 0x7a }
  package var isControl: Bool { self < 0x20 || self == 0x7f }
}

/// Parses a decimal number that consists of digits only and fits its type. `UInt64(_:)` would accept a plus sign.
package func decimal<Number: FixedWidthInteger>(
  _ text: some Collection<UInt8>, as type: Number.Type = Number.self
)
  -> Number?
{
  guard !text.isEmpty else { return nil }
  var number: Number = 0
  for byte in text {
    guard byte.isDigit else { return nil }
    let (scaled, overflow) = number.multipliedReportingOverflow(by: 10)
    let (sum, overflow2) = scaled.addingReportingOverflow(Number(truncatingIfNeeded: byte - 0x30))
    if overflow || overflow2 { return nil }
    number = sum
  }
  return number
}
