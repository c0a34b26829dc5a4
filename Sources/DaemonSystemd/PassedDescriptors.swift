// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// The descriptors that the service manager has passed to this process: listening sockets of socket units, and what
/// an earlier run of the service has stored.
///
/// ```swift
/// let passed = try PassedDescriptors.take()
/// let listener = passed.take(named: "http")
/// var connections: [Connection] = []
/// while let next = passed.take(named: "connection") { connections.append(Connection(next)) }
/// try passed.closeRemaining(removingFrom: DescriptorStore(.current))  // names that this version does not know
/// ```
///
/// Whoever takes one owns it; what is left is closed with this object. Each is close-on-exec from the beginning,
/// so no child inherits it. Do not call shutdown(2) on a listening socket: it is the manager's too.
///
/// Source: sd_listen_fds(3). Safe to use from any thread.
public final class PassedDescriptors: Sendable {
  package struct Description: Sendable, Hashable {
    /// Its name: of `FileDescriptorName=` or the socket unit, of `FDNAME=`, "unknown", "connection" or "stored".
    package let name: String
    /// Its number, as long as nobody has taken it; to look at, not to close.
    package let number: Int32
    package let kind: DescriptorKind
  }

  /// Those not taken yet, in the manager's order; each is open and owned by this object.
  private let entries: Mutex<[Description]>

  private init(_ entries: [Description]) { self.entries = Mutex(entries) }

  deinit {
    entries.withLock { entries in
      for entry in entries { close(entry.number) }
    }
  }

  // MARK: Taking them over

  private static let isTaken = Mutex(false)

  /// Takes over what was passed to this process; an empty set when nothing was.
  ///
  /// It works once a process, since a descriptor has one owner: the second call is an error.
  ///
  /// - Throws: `malformedVariable`; `malformedInput` when a descriptor is not open, which means that something has
  ///   closed it before, so call it early; `invalidArgument` the second time. After an error nothing is closed.
  public static func take(
    from environment: ServiceEnvironment = .current
  ) throws(SystemdError) -> PassedDescriptors {
    try take(from: environment, first: 3)
  }

  /// `first` is for tests, in whose process the lowest numbers are used by others.
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

  /// Those from number `first` on.
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

  /// Duplicates of these, for tests: what a process would be passed.
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

  // MARK: What is there

  package var descriptions: [Description] { entries.withLock { $0 } }
  /// The names of the descriptors that nobody has taken yet, each once, in order.
  public var names: [String] {
    var seen: Set<String> = []
    return descriptions.map(\.name).filter { seen.insert($0).inserted }
  }

  // MARK: Handing them out

  /// Hands out the first descriptor of this name; `nil` when there is none left. Whoever takes it owns it.
  public func take(named name: String) -> OwnedDescriptor? { takeFirst { $0.name == name } }

  /// The first one for which `matches` is true, as one of a certain kind; `nil` when there is none left. Asked under a
  /// lock.
  func takeFirst(where matches: (Description) -> Bool) -> OwnedDescriptor? {
    let number = entries.withLock { entries in
      entries.firstIndex(where: matches).map { entries.remove(at: $0).number }
    }
    guard let number else { return nil }
    return OwnedDescriptor(owning: number)
  }

  /// Takes one back that was handed out, as it was; it comes first.
  func giveBack(_ descriptor: consuming OwnedDescriptor, named name: String, kind: DescriptorKind) {
    let entry = Description(name: name, number: descriptor.release(), kind: kind)
    entries.withLock { $0.insert(entry, at: 0) }
  }

  /// Closes what nobody has taken, and has the manager forget those names, so that it does not pass them again to the
  /// next run: what an older or newer version of the daemon has stored.
  ///
  /// The manager forgets a name, not a descriptor: so a name of which one was taken should not be among those left.
  /// Names of listening sockets are not in the store; for them the message does nothing.
  ///
  /// - Returns: The names, each once.
  /// - Throws: What ``DescriptorStore/remove(named:timeout:)`` throws, at the end: everything is closed then.
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
