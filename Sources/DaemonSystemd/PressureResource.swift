// SPDX-License-Identifier: Apache-2.0
package enum PressureResource: String, Sendable, Hashable, CaseIterable {
  /// The resources of /proc/pressure.
  case memory, cpu, io
}

/// The way in which the service manager requests a pressure to be watched.
package struct PressureWatch: Sendable, Hashable {
  /// The file, FIFO or socket to watch, absolute.
  package let path: String
  /// The bytes to write into it first; may be empty and may contain NUL.
  package let write: [UInt8]

  /// Makes a watch, for tests and for files that the service chooses.
  package init(path: String, write: [UInt8] = []) {
    self.path = path
    self.write = write
  }

  package var isOff: Bool { path == "/dev/null" }
}
