// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// The descriptors that the service manager passed to this process: listening sockets of socket units, and those that
/// an earlier run of the service stored.
///
/// ```swift
/// let passed = try PassedDescriptors.take()
/// let listener = passed.take(named: "http")
/// var connections: [Connection] = []
/// while let next = passed.take(named: "connection") { connections.append(Connection(next)) }
/// try passed.closeRemaining(removingFrom: DescriptorStore(.current))  // names that this version does not know
/// ```
///
/// The caller owns a descriptor that it takes; the others are closed with this object. All are close-on-exec, so no
/// child inherits them. Do not call shutdown(2) on a listening socket: the manager has it open too.
///
/// Source: sd_listen_fds(3). Safe to use from any thread.
public final class PassedDescriptors: Sendable {
  package struct Description: Sendable, Hashable {
    /// The name: of `FileDescriptorName=` or the socket unit, of `FDNAME=`, "unknown", "connection" or "stored".
    package let name: String
    /// The number, valid until the descriptor is taken; it may be inspected, not closed.
    package let number: Int32
    package let kind: DescriptorKind
  }

  /// The descriptors that are not taken yet, in the manager's order; each is open and owned by this object.
  private let entries: Mutex<[Description]>

  private init(_ entries: [Description]) { self.entries = Mutex(entries) }

  deinit {
    entries.withLock { entries in
      for entry in entries { close(entry.number) }
    }
  }

  // MARK: Taking over

  private static let isTaken = Mutex(false)

  /// Takes over the descriptors that were passed to this process; there may be none.
  ///
  /// It can be called once in a process, since a descriptor has one owner: the second call is an error.
  ///
  /// - Throws: `malformedVariable`; `malformedInput` when a descriptor is not open, since other code has closed it (so
  ///   call this early); `invalidArgument` the second time. After an error nothing is closed.
  public static func take(
    from environment: ServiceEnvironment = .current
  ) throws(SystemdError) -> PassedDescriptors {
    try take(from: environment, first: 3)
  }

  /// Takes over descriptors from number `first` on: tests use it, since lower numbers are in use in their process.
  static func take(
    from environment: ServiceEnvironment, first: Int32
  ) throws(SystemdError) -> PassedDescriptors {
    let names = try environment.passedDescriptorNames
    guard !names.isEmpty else { return PassedDescriptors([]) }
    return try isTaken.withLock { taken throws(SystemdError) in
      guard !taken else {
        throw .invalidArgument(
          "The descriptors passed to this process were taken already: keep that set.")
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
      entries.append(Description(name: name, number: number, kind: try DescriptorKind(of: number)))
    }
    self.init(entries)
  }

  /// Makes the object with duplicates of descriptors, for tests.
  package convenience init(
    duplicating descriptors: [(number: Int32, name: String)]
  ) throws(SystemdError) {
    self.init([])
    for (number, name) in descriptors {
      let copy = clinux_duplicate(number, 3)
      guard copy >= 0 else {
        throw .system("duplicate file descriptor \(number)", errno: clinux_errno())
      }
      let owned = OwnedDescriptor(owning: copy)
      let kind = try DescriptorKind(of: owned.rawValue)
      let entry = Description(name: name, number: owned.release(), kind: kind)
      entries.withLock { $0.append(entry) }
    }
  }

  // MARK: Contents

  package var descriptions: [Description] { entries.withLock { $0 } }
  /// The names of the descriptors that are not taken yet, each once, in order.
  public var names: [String] {
    var seen: Set<String> = []
    return descriptions.map(\.name).filter { seen.insert($0).inserted }
  }

  // MARK: Taking

  /// Takes the first descriptor of this name, which the caller then owns; returns `nil` when there is none left.
  public func take(named name: String) -> OwnedDescriptor? { takeFirst { $0.name == name } }

  /// Takes the first descriptor for which `matches` is true; returns `nil` when there is none. `matches` is called with
  /// a lock held.
  func takeFirst(where matches: (Description) -> Bool) -> OwnedDescriptor? {
    let number = entries.withLock { entries in
      entries.firstIndex(where: matches).map { entries.remove(at: $0).number }
    }
    guard let number else { return nil }
    return OwnedDescriptor(owning: number)
  }

  /// Takes a descriptor back, as the first.
  func giveBack(_ descriptor: consuming OwnedDescriptor, named name: String, kind: DescriptorKind) {
    let entry = Description(name: name, number: descriptor.release(), kind: kind)
    entries.withLock { $0.insert(entry, at: 0) }
  }

  /// Closes the descriptors that were not taken, and removes their names from the store, so that they are not passed to
  /// the next run: for those that another version of the daemon has stored.
  ///
  /// The manager removes by name: if one descriptor of a name was taken, none of that name should be left. Listening
  /// sockets are not in the store; for them the message has no effect.
  ///
  /// - Returns: The names, each once.
  /// - Throws: The errors of ``DescriptorStore/remove(named:timeout:)``, after everything was closed.
  @discardableResult
  public func closeRemaining(
    removingFrom store: DescriptorStore? = nil
  ) throws(SystemdError) -> [String] {
    let names = names
    let left = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    var failure: SystemdError?
    for name in names where !name.isEmpty {
      do { try store?.remove(named: name) } catch { failure = failure ?? error }
    }
    for entry in left { close(entry.number) }
    if let failure { throw failure }
    return names
  }
}
