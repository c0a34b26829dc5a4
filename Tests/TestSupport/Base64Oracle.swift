// SPDX-License-Identifier: Apache-2.0
/// Base64 of some bytes, another way round than the package's parser, to judge that by.
package func base64(of bytes: [UInt8]) -> [UInt8] {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var result: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
    for digit in 0..<4 {
      result.append(
        digit > group.count ? UInt8(ascii: "=") : alphabet[bits >> (18 - 6 * digit) & 63])
    }
  }
  return result
}
