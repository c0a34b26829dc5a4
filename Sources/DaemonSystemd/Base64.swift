// SPDX-License-Identifier: Apache-2.0
/// Decodes Base64 (RFC 4648, section 4) as systemd writes and reads it: padded, white space ignored. Returns `nil` for
/// any other text.
func decodeBase64(_ text: some Collection<UInt8>) -> [UInt8]? {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  let text = text.filter { $0 != 0x20 && !($0 >= 0x09 && $0 <= 0x0d) }
  let digits = text.prefix { $0 != UInt8(ascii: "=") }
  let padding = text.dropFirst(digits.count)
  guard text.count % 4 == 0, padding.count <= 2, padding.allSatisfy({ $0 == UInt8(ascii: "=") })
  else { return nil }
  var result: [UInt8] = []
  var bits = 0
  /// The number of the lowest bits that are not in the result.
  var left = 0
  for digit in digits {
    guard let value = alphabet.firstIndex(of: digit) else { return nil }
    bits = (bits << 6 | value) & 0xffff
    left = (left + 6) % 8
    if left < 6 { result.append(UInt8(truncatingIfNeeded: bits >> left)) }
  }
  // The last bits are padding.
  return bits & (1 << left - 1) == 0 ? result : nil
}
