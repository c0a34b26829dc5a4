// SPDX-License-Identifier: Apache-2.0
import CLinux

extension ServiceEnvironment {
  /// Returns the watch in `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE` (systemd 254), or in those of cpu and io
  /// (261); `nil` when they are unset, which leaves the choice to the service.
  package func pressureWatch(for resource: PressureResource) throws(SystemdError) -> PressureWatch?
  {
    let prefix = "\(resource.rawValue.uppercased())_PRESSURE_"
    guard let path = try absolutePath(in: prefix + "WATCH") else { return nil }
    let watch = PressureWatch(path: path)
    guard !watch.isOff, let text = self[prefix + "WRITE"] else { return watch }
    guard let bytes = decodeBase64(text.utf8) else {
      throw malformed(prefix + "WRITE", "is not Base64")
    }
    return PressureWatch(path: path, write: bytes)
  }

  /// Returns the watch to use: the service manager's, which may be off; else, with `fallsBack`, that of this process's
  /// control group, or else of the whole machine. `nil` when the manager sets none and there is no fallback.
  package func pressureWatch(
    for resource: PressureResource, fallsBack: Bool
  ) throws(SystemdError) -> PressureWatch? {
    if let watch = try pressureWatch(for: resource) { return watch }
    guard fallsBack else { return nil }
    return try .ownCgroup(for: resource) ?? .systemWide(for: resource)
  }
}

extension PressureWatch {
  /// The trigger: some task waits for 200 ms within 2 s. systemd gives the same to services
  /// (systemd.resource-control(5)), and the kernel allows the window to any user. It ends with NUL, since the kernel
  /// overwrites the last byte.
  static let trigger = Array("some 200000 2000000\0".utf8)

  /// Returns the pressure file of this process's control group; `nil` when there is none that this process may write
  /// to: without a unified hierarchy, without pressure accounting, or when the group is not delegated to the service.
  static func ownCgroup(for resource: PressureResource) throws(SystemdError) -> PressureWatch? {
    let paths = try PressureCgroup.folders().map { "\($0)/\(resource.rawValue).pressure" }
    return paths.first { access($0, W_OK) == 0 }.map { PressureWatch(path: $0, write: trigger) }
  }

  /// Returns the whole machine's pressure file, whether or not this kernel has it: opening it gives the reason.
  static func systemWide(for resource: PressureResource) -> PressureWatch {
    PressureWatch(path: "/proc/pressure/\(resource.rawValue)", write: trigger)
  }
}
