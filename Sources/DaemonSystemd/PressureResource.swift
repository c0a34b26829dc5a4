// SPDX-License-Identifier: Apache-2.0
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

  package var isOff: Bool { path == "/dev/null" }
}
