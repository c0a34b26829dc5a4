// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The ID of this run of the unit (`INVOCATION_ID`, systemd 232): 32 hexadecimal digits, new with each start; `nil`
  /// when unset.
  ///
  /// - Throws: `malformedVariable`.
  public var invocationID: String? {
    get throws(SystemdError) {
      guard let id = self["INVOCATION_ID"] else { return nil }
      guard id.utf8.allSatisfy(\.isHexDigit), id.utf8.count == 32 else {
        throw malformed("INVOCATION_ID", "is not 32 hexadecimal digits")
      }
      return id
    }
  }

  /// The identity that standard output or standard error has if it goes to the journal (`JOURNAL_STREAM`, systemd 231).
  /// Compare it with fstat(2) of the descriptor: a shell may have redirected it.
  package var journalStream: FileIdentity? {
    get throws(SystemdError) {
      guard let text = self["JOURNAL_STREAM"] else { return nil }
      let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        .map { decimal($0, as: UInt64.self) }
      guard parts.count == 2, let device = parts[0], let inode = parts[1] else {
        throw malformed(
          "JOURNAL_STREAM", "is not a device and an inode number with a colon between")
      }
      return FileIdentity(device: device, inode: inode)
    }
  }
}
