import CLinux

extension ServiceEnvironment {
  /// Whether this process belongs to a user's service manager (`systemd --user`) rather than the system's.
  ///
  /// Read off the control group, which systemd names after the manager: a service of a user's is below
  /// `user@UID.service`. False where /proc can't be read. Asks the kernel each time.
  public var isUserService: Bool {
    let file = clinux_open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { buffer in
      let count = read(file, buffer.baseAddress, buffer.count)
      guard count > 0 else { return false }
      return Self.isBelowUserManager(String(decoding: buffer.prefix(count), as: UTF8.self))
    }
  }

  /// `text` is a /proc/PID/cgroup, see cgroups(7).
  static func isBelowUserManager(_ text: String) -> Bool {
    text.split(separator: "\n").contains { line in
      let folders = line.split(separator: "/").dropFirst()
      return folders.dropLast().contains { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
    }
  }
}
