// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// The descriptors that the service manager passed to this process: listening sockets of socket units, and those that
/// an earlier run of the service stored.
///
/// The caller owns a descriptor that it takes; the others are closed with this object. All are close-on-exec, so no
/// child inherits them. Source: sd_listen_fds(3). Safe to use from any thread.
package final class PassedDescriptors: Sendable {
  package struct Description: Sendable, Hashable {
    /// The name: of `FileDescriptorName=` or the socket unit, of `FDNAME=`, "unknown", "connection" or "stored".
    package let name: String
    /// The number, valid until the descriptor is taken; it may be inspected, not closed.
    package let number: Int32
    /// The use that it is suitable for; `nil` for a file, a device and so on.
    package let use: DescriptorUse?
  }

  /// The descriptors that are not taken yet, in the manager's order; each is open and owned by this object.
  private let entries: Mutex<[Description]>

  private init(_ entries: [Description]) { self.entries = Mutex(entries) }

  deinit { closeRemaining() }

  // MARK: Taking over

  private static let isTaken = Mutex(false)

  /// Takes over the descriptors that were passed to this process; there may be none.
  ///
  /// Each descriptor has one owner, so if there are any, a second call in the process is an error.
  ///
  /// - Parameter first: The number of the first. Tests use another, since lower numbers are in use in their process.
  /// - Throws: `malformedVariable`; `malformedInput` when a descriptor is not open, since other code has closed it;
  ///   `invalidArgument` the second time. After an error nothing is closed.
  package static func take(
    from environment: ServiceEnvironment, first: Int32 = 3
  ) throws(SystemdError) -> PassedDescriptors {
    let names = try environment.passedDescriptorNames
    guard !names.isEmpty else { return PassedDescriptors([]) }
    return try isTaken.withLock { taken throws(SystemdError) in
      guard !taken else {
        throw .invalidArgument(
          "The descriptors passed to this process were taken already: keep that Preservation.")
      }
      let passed = try PassedDescriptors(names: names, first: first)
      taken = true
      return passed
    }
  }

  /// Makes the object for descriptors from number `first` on.
  convenience init(names: [String], first: Int32) throws(SystemdError) {
    var entries: [Description] = []
    for (index, name) in names.enumerated() {
      let number = first + Int32(index)
      guard clinux_set_close_on_exec(number) >= 0 else {
        throw .malformedInput(
          "Descriptor \(number) (\"\(name)\") of the \(names.count) passed in LISTEN_FDS is not open."
            + " Take them before anything can close them.")
      }
      entries.append(Description(name: name, number: number, use: try DescriptorUse(of: number)))
    }
    self.init(entries)
  }

  /// Makes the object with duplicates of descriptors, for tests.
  package convenience init(
    duplicating descriptors: [(number: Int32, name: String)] = []
  ) throws(SystemdError) {
    self.init([])
    for (number, name) in descriptors {
      let copy = clinux_duplicate(number, 3)
      guard copy >= 0 else {
        throw .system(purpose: "duplicate file descriptor \(number)", errno: clinux_errno())
      }
      let owned = OwnedDescriptor(owning: copy)
      let use = try DescriptorUse(of: owned.rawValue)
      let entry = Description(name: name, number: owned.release(), use: use)
      entries.withLock { $0.append(entry) }
    }
  }

  // MARK: Contents

  /// The descriptors that are not taken yet.
  package var descriptions: [Description] { entries.withLock { $0 } }

  /// Their names, each once, in order.
  package var names: [String] {
    var seen: Set<String> = []
    return descriptions.map(\.name).filter { seen.insert($0).inserted }
  }

  /// Takes the first descriptor for which `matches` is true; returns `nil` when there is none. `matches` is called with
  /// a lock held.
  package func takeFirst(where matches: (Description) -> Bool) -> OwnedDescriptor? {
    let number = entries.withLock { entries in
      entries.firstIndex(where: matches).map { entries.remove(at: $0).number }
    }
    guard let number else { return nil }
    return OwnedDescriptor(owning: number)
  }

  /// Takes a memory file back, which becomes the first descriptor.
  func giveBack(_ memory: consuming OwnedDescriptor, named name: String) {
    let entry = Description(name: name, number: memory.release(), use: .memory)
    entries.withLock { $0.insert(entry, at: 0) }
  }

  /// Closes the descriptors that were not taken.
  func closeRemaining() {
    let left = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    for entry in left { close(entry.number) }
  }
}
