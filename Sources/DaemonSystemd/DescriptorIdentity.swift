import CLinux

/// Which open file a number leads to: what other code of the process changes when it closes a number that is not its
/// own, and is given it for another file.
package struct DescriptorIdentity: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// `nil` when the number is not open.
  package init?(of number: Int32) {
    var status = stat()
    guard fstat(number, &status) == 0 else { return nil }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }
}
