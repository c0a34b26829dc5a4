/// What a machine or a control group can run short of.
package enum PressureResource: String, Sendable, Hashable, CaseIterable {
  /// As in /proc/pressure.
  case memory, cpu, io
}

/// How the service manager wants a pressure to be watched.
package struct PressureWatch: Sendable, Hashable {
  /// The file, FIFO or socket to watch, absolute.
  package let path: String
  /// What to write into it first; may have NUL bytes in it and may be empty.
  package let write: [UInt8]

  /// For tests, and for files that the service chooses itself.
  package init(path: String, write: [UInt8] = []) {
    self.path = path
    self.write = write
  }

  /// Whether watching is switched off for this service.
  package var isOff: Bool { path == "/dev/null" }
}

extension ServiceEnvironment {
  /// `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE` (254), or those of cpu and io (261); `nil` when unset: then
  /// the manager leaves it to the service what to watch.
  package func pressureWatch(for resource: PressureResource) throws(SystemdError) -> PressureWatch?
  {
    try PressureWatch.configured(for: resource, variables: variables)
  }
}
