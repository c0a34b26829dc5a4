// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycleState

/// The files of states in memory: what a store leaves here is there for the next, as on a disk.
///
/// Two stores at a time conflict as they would on a disk. Safe to use from any thread.
final class StateMemory: Sendable {
  static let path = "(memory)"
  let files = CrashFileSystem()

  /// While it is not `nil`, whatever would write fails with this `errno` value.
  var failure: Int32? {
    get { files.failure }
    set { files.failure = newValue }
  }

  /// The files and what is in them.
  var contents: [String: [UInt8]] {
    get { files.visible.files }
    set { files.replace(newValue) }
  }
}

extension StateStore {
  convenience init(
    memory: StateMemory, name: String = "state", version: UInt32 = 1, limit: Int = 64 << 20
  ) throws(StateError) {
    try self.init(
      StateMemory.path, name, version: version, limit: limit, files: memory.files)
  }
}
