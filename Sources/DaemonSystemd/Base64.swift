/// The bytes of a Base64 text (RFC 4648, section 4) as systemd writes and reads it: padded, white space ignored; `nil`
/// if it is none.
func decodeBase64(_ text: some Collection<UInt8>) -> [UInt8]? {
  var result: [UInt8] = []
  result.reserveCapacity(text.count / 4 * 3)
  var bits: UInt32 = 0
  var digits = 0
  var padding = 0
  for byte in text {
    if byte == 0x20 || byte >= 0x09 && byte <= 0x0d { continue }
    if byte == UInt8(ascii: "=") {
      padding += 1
      guard padding <= 2 else { return nil }
      continue
    }
    guard padding == 0, let value = base64Value(byte) else { return nil }
    bits = bits << 6 | UInt32(value)
    digits += 1
    if digits % 4 == 0 {
      result.append(UInt8(truncatingIfNeeded: bits >> 16))
      result.append(UInt8(truncatingIfNeeded: bits >> 8))
      result.append(UInt8(truncatingIfNeeded: bits))
    }
  }
  guard (digits + padding) % 4 == 0 else { return nil }
  switch padding {
  case 0: return result
  case 1:  // 18 bits, of which the last two stand for nothing
    guard bits & 0x3 == 0 else { return nil }
    result.append(UInt8(truncatingIfNeeded: bits >> 10))
    result.append(UInt8(truncatingIfNeeded: bits >> 2))
  default:  // 12 bits, of which the last four stand for nothing
    guard bits & 0xf == 0 else { return nil }
    result.append(UInt8(truncatingIfNeeded: bits >> 4))
  }
  return result
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
