// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// Whether this process belongs to a user's service manager (`systemd --user`) rather than the system's.
  ///
  /// It is determined from the control group: a user service's is below `user@UID.service`. It is false where /proc
  /// can't be read. Each access reads /proc.
  package var isUserService: Bool {
    guard let file = try? readProcFile("/proc/self/cgroup") else { return false }
    return String(decoding: file, as: UTF8.self).split(separator: "\n").contains { line in
      let folders = line.split(separator: "/").dropFirst()
      return folders.dropLast().contains { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
    }
  }
}
