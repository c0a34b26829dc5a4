// SPDX-License-Identifier: Apache-2.0
extension ServiceEnvironment {
  /// The unit of the service manager (`systemd --user`) of a user's service, such as `user@1000.service`; `nil` for a
  /// service of the system.
  ///
  /// It is determined from the control group, which is below the manager's. It is `nil` where /proc can't be read. Each
  /// access reads /proc.
  package var userManager: String? {
    guard let file = try? readProcFile("/proc/self/cgroup") else { return nil }
    for line in String(decoding: file, as: UTF8.self).split(separator: "\n") {
      let folders = line.split(separator: "/").dropFirst().dropLast()
      let manager = folders.first { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
      if let manager { return String(manager) }
    }
    return nil
  }
}
