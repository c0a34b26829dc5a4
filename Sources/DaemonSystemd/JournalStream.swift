import CLinux

/// What the service manager connected standard output or standard error to: `JOURNAL_STREAM`.
///
///     let stream = try variables["JOURNAL_STREAM"].map { text throws(SystemdError) in
///       try JournalStream(text)
///     }
///     if stream?.isDescriptor(2) == true { /* nobody has redirected standard error since */ }
///
/// Source: systemd.exec(5), systemd 231 and later.
public struct JournalStream: Sendable, Hashable {
  /// The stream's st_dev, as fstat(2) gives it.
  public let device: UInt64
  /// The stream's st_ino, as fstat(2) gives it.
  public let inode: UInt64

  /// A stream by its two numbers.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  /// Reads the value of `JOURNAL_STREAM`, "device:inode" in decimal. Throws
  /// ``SystemdError/malformedVariable(name:value:reason:)`` otherwise.
  public init(_ value: String) throws(SystemdError) {
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

  /// Whether this descriptor is that stream, and not something that a shell has put in its place.
  public func isDescriptor(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && UInt64(status.st_dev) == device
      && UInt64(status.st_ino) == inode
  }
}
