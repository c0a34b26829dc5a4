// SPDX-License-Identifier: Apache-2.0
/// The names of descriptors, as in `FileDescriptorName=` and `FDNAME=`.
package enum DescriptorName {
  /// Whether systemd allows the name: ASCII without control characters and ':', at most 255 bytes. An empty name is
  /// allowed.
  package static func isValid(_ name: some Collection<UInt8>) -> Bool {
    name.count <= 255 && name.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
  }

  /// Checks a name that this package sends, which must not be empty either. The manager would ignore an invalid name
  /// and store the descriptor as "stored".
  static func checked(_ name: String) throws(SystemdError) -> String {
    guard !name.isEmpty, isValid(name.utf8) else {
      throw .invalidArgument(
        "\"\(name)\" can't name a descriptor: 1 to 255 ASCII characters without control characters and ':'."
      )
    }
    return name
  }
}
