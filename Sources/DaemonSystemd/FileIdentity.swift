// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The identity of the file that a descriptor or a path leads to. A descriptor's changes when other code of the process
/// closes its number by mistake and the number is reused; but all descriptors of timerfd_create(2), eventfd(2),
/// signalfd(2) and epoll_create(2) have the same one.
package struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  package init(device: UInt64, inode: UInt64) { (self.device, self.inode) = (device, inode) }

  /// Reads the identity of a descriptor; `nil` when it is not open.
  package init?(of number: Int32) {
    var status = stat()
    guard fstat(number, &status) == 0 else { return nil }
    self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }
}
