import CLinux

/// Which open file a descriptor or a name leads to: what changes when other code of the process closes a number that is
/// not its own, and is given it for another file.
package struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  package init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }

  /// `nil` when the number is not open.
  package init?(of number: Int32) {
    var status = stat()
    guard fstat(number, &status) == 0 else { return nil }
    self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }

  /// The value of `JOURNAL_STREAM`: device and inode in decimal, with a colon between. Throws `malformedVariable`.
  init(journalStream value: String) throws(SystemdError) {
    let parts = value.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count == 2, let device = decimal(parts[0], as: UInt64.self),
      let inode = decimal(parts[1], as: UInt64.self)
    else {
      throw .malformedVariable(
        name: "JOURNAL_STREAM", value: value,
        reason: "is not a device and an inode number with a colon between")
    }
    self.init(device: device, inode: inode)
  }
}
