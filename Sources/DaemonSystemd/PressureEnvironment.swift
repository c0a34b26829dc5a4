// SPDX-License-Identifier: Apache-2.0
import CLinux

extension ServiceEnvironment {
  /// What the service manager says in `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE` (systemd 254), or those
  /// of cpu and io (261); nil when they are unset, for then it leaves the choice to the service.
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

  /// What to watch: what the service manager says, which may be that it is off; else, with `fallsBack`, this
  /// process's control group; else the whole machine. Nil when nothing is said and it does not fall back.
  package func pressureWatch(
    for resource: PressureResource, fallsBack: Bool
  ) throws(SystemdError) -> PressureWatch? {
    if let watch = try pressureWatch(for: resource) { return watch }
    guard fallsBack else { return nil }
    return try .ownCgroup(for: resource) ?? .systemWide(for: resource)
  }
}

extension PressureWatch {
  /// From 200 ms in 2 s on, for some task: what systemd itself gives to services (systemd.resource-control(5)), and a
  /// window that the kernel lets anyone ask for. It ends with NUL, since the kernel overwrites the last byte.
  static let trigger = Array("some 200000 2000000\0".utf8)

  /// The pressure file of the control group that this process is in; nil where there is none that this process
  /// may write to: no unified hierarchy, pressure not accounted for, or a service that it was not delegated
  /// to.
  static func ownCgroup(for resource: PressureResource) throws(SystemdError) -> PressureWatch? {
    let paths = try PressureCgroup.folders().map { "\($0)/\(resource.rawValue).pressure" }
    return paths.first { access($0, W_OK) == 0 }.map { PressureWatch(path: $0, write: trigger) }
  }

  /// The whole machine's pressure file, whether or not this kernel has it: opening it says why not.
  static func systemWide(for resource: PressureResource) -> PressureWatch {
    PressureWatch(path: "/proc/pressure/\(resource.rawValue)", write: trigger)
  }
}
