// SPDX-License-Identifier: Apache-2.0
/// Decodes Base64 (RFC 4648, section 4) as systemd writes and reads it: padded, white space ignored. Returns `nil` for
/// any other text.
func decodeBase64(_ text: some Collection<UInt8>) -> [UInt8]? {
  let text = text.filter { $0 != 0x20 && !($0 >= 0x09 && $0 <= 0x0d) }
  let digits = text.prefix { $0 != UInt8(ascii: "=") }
  let padding = text.dropFirst(digits.count)
  guard text.count % 4 == 0, padding.count <= 2, padding.allSatisfy({ $0 == UInt8(ascii: "=") })
  else { return nil }
  var result: [UInt8] = []
  var bits: UInt32 = 0
  /// The number of the lowest bits that are not in the result.
  var left = 0
  for digit in digits {
    guard let value = base64Value(digit) else { return nil }
    bits = bits << 6 | UInt32(value)
    left = (left + 6) % 8
    if left < 6 { result.append(UInt8(truncatingIfNeeded: bits >> left)) }
  }
  // The last bits are padding.
  return bits & (1 << left - 1) == 0 ? result : nil
}

private func base64Value(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x41...0x5a: byte - 0x41
  case 0x61...0x7a: byte - 0x61 + 26
  case 0x30...0x39: byte - 0x30 + 52
  case UInt8(ascii: "+"): 62
  case UInt8(ascii: "/"): 63
  default: nil
  }
}
