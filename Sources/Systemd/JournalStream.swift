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
  /// st_dev and st_ino of the stream, as fstat(2) gives them.
  public let device: UInt64
  public let inode: UInt64

  /// Reads the value of `JOURNAL_STREAM`, "device:inode" in decimal. Throws
  /// ``SystemdError/malformedVariable(name:value:reason:)`` otherwise.
  public init(_ value: String) throws(SystemdError) {
    let parts = value.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count == 2, let device = Self.number(parts[0]), let inode = Self.number(parts[1])
    else {
      throw .malformedVariable(
        name: "JOURNAL_STREAM", value: value,
        reason: "is not a device and an inode number with a colon between")
    }
    self.device = device
    self.inode = inode
  }

  /// Whether this descriptor is that stream, and not something that a shell has put in its place.
  public func isDescriptor(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && UInt64(status.st_dev) == device
      && UInt64(status.st_ino) == inode
  }

  private static func number(_ digits: Substring.UTF8View) -> UInt64? {
    guard !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for byte in digits {
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) = tens.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
      if overflow || overflow2 { return nil }
      number = sum
    }
    return number
  }
}
