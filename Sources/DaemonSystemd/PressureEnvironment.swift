import CLinux

/// Where a service finds what to watch: what the service manager says, else its own control group, else the
/// whole machine.
extension PressureWatch {
  /// What the service manager says in `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE` (systemd 254), or those
  /// of cpu and io (261); nil when they are unset, for then it leaves the choice to the service.
  ///
  /// Throws ``SystemdError/malformedVariable(name:value:reason:)`` when the path is not absolute or the bytes
  /// are not Base64.
  package static func configured(
    for resource: PressureResource, variables: [String: String]
  ) throws(SystemdError) -> PressureWatch? {
    let name = "\(resource.rawValue.uppercased())_PRESSURE_WATCH"
    guard let path = variables[name] else { return nil }
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
      throw .malformedVariable(name: name, value: path, reason: "is not an absolute path")
    }
    let watch = PressureWatch(path: path)
    let writeName = "\(resource.rawValue.uppercased())_PRESSURE_WRITE"
    guard !watch.isOff, let text = variables[writeName] else { return watch }
    guard let bytes = decodeBase64(text.utf8) else {
      throw .malformedVariable(name: writeName, value: text, reason: "is not Base64")
    }
    return PressureWatch(path: path, write: bytes)
  }

  /// From 200 ms in 2 s on, for some task: what systemd itself gives to services (systemd.resource-control(5)), and a
  /// window that the kernel lets anyone ask for. It ends with NUL, since the kernel overwrites the last byte.
  static let trigger = Array("some 200000 2000000\0".utf8)

  /// The pressure file of the control group that this process is in; nil where there is none that this process
  /// may write to: no unified hierarchy, pressure not accounted for, or a service that it was not delegated
  /// to.
  ///
  /// Throws what reading /proc/self/cgroup and /proc/self/mountinfo comes upon.
  static func ownCgroup(for resource: PressureResource) throws(SystemdError) -> PressureWatch? {
    guard let folder = try PressureCgroup.folder() else { return nil }
    let path = "\(folder)/\(resource.rawValue).pressure"
    guard access(path, W_OK) == 0 else { return nil }
    return PressureWatch(path: path, write: trigger)
  }

  /// The whole machine's pressure file, whether or not this kernel has it: opening it says why not.
  static func systemWide(for resource: PressureResource) -> PressureWatch {
    PressureWatch(path: "/proc/pressure/\(resource.rawValue)", write: trigger)
  }

  /// What to watch: what the service manager says, which may be that it is off; else, with `fallsBack`, this
  /// process's control group; else the whole machine. Nil when nothing is said and it does not fall back.
  ///
  /// Throws as ``configured(for:variables:)`` and ``ownCgroup(for:)`` do.
  package static func resolve(
    for resource: PressureResource, variables: [String: String], fallsBack: Bool
  ) throws(SystemdError) -> PressureWatch? {
    if let watch = try configured(for: resource, variables: variables) { return watch }
    guard fallsBack else { return nil }
    return try ownCgroup(for: resource) ?? systemWide(for: resource)
  }
}
