// SPDX-License-Identifier: Apache-2.0
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
}
