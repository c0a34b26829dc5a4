// SPDX-License-Identifier: Apache-2.0
import Synchronization

// The descriptors and bytes that the last run has left.
extension Preservation {
  /// Returns the names of the descriptors that are not taken yet, each once: those with a prefix, by default all.
  public func names(prefix: String = "") -> [String] {
    passed.names.filter { $0.hasPrefix(prefix) }
  }

  /// Takes the first descriptor of this name that is suitable for a use; returns `nil` when none of the name is left.
  ///
  /// ```swift
  /// while let listener = try preservation.preserved(
  ///   named: "http", as: .listeningStream) { … }
  /// ```
  ///
  /// The caller owns the descriptor. The manager keeps its duplicate until ``forget(named:timeout:)`` is called.
  ///
  /// - Throws: `wrongKind` when the remaining descriptors of the name are of other kinds; they are not taken.
  public func preserved(
    named name: String, as use: DescriptorUse
  ) throws(SystemdError) -> OwnedDescriptor? {
    let first = passed.takeFirst { $0.name == name && (use == .any || use == $0.use) }
    guard let first else {
      guard let other = passed.descriptions.first(where: { $0.name == name }) else { return nil }
      throw .wrongKind(
        name: name, expected: use, found: other.use?.description ?? "file of another kind")
    }
    account.withLock { _ = $0.taken.insert(name) }
    return first
  }

  /// Returns the bytes preserved under this name; `nil` when there are none.
  ///
  /// The manager keeps them, in case this run fails before it uses them. Once they are in use, call
  /// ``forget(named:timeout:)``, since otherwise they return after a crash.
  ///
  /// - Parameters:
  ///   - name: The name, as passed to ``preserve(_:named:timeout:)``.
  ///   - limit: The largest number of bytes to read. Default 64 MiB.
  /// - Throws: `wrongKind`; `malformedInput` when there are more; `system`. The bytes are then not taken, and after
  ///   `system` ``closeUnknown(timeout:)`` leaves them in the store.
  public func preservedBytes(
    named name: String, limit: Int = 64 << 20
  ) throws(SystemdError) -> [UInt8]? {
    let wasTaken = account.withLock { $0.taken.contains(name) }
    guard let memory = try preserved(named: name, as: .memory) else { return nil }
    do throws(SystemdError) {
      return try memory.memoryBytes(limit: limit)
    } catch {
      passed.giveBack(memory, named: name)
      // Bytes that can never be read count as unknown, so that `closeUnknown` removes them from the store.
      if case .malformedInput = error, !wasTaken {
        account.withLock { _ = $0.taken.remove(name) }
      }
      throw error
    }
  }

  /// Closes the descriptors that were not taken, such as those of another version of the daemon, and removes them from
  /// the store.
  ///
  /// Call it when all known names are taken. If one descriptor of a name was taken, or preserved by this run, the others
  /// of the name are closed but not forgotten, since the manager would forget the one in use as well.
  ///
  /// - Returns: The names, each once.
  /// - Throws: The errors of ``forget(named:timeout:)``, after everything was closed.
  @discardableResult
  public func closeUnknown(timeout: Duration = .seconds(5)) throws(SystemdError) -> [String] {
    let left = passed.names
    let taken = account.withLock { $0.taken }
    var failure: SystemdError?
    for name in left where !name.isEmpty && !taken.contains(name) {
      do { try forget(named: name, timeout: timeout) } catch { failure = failure ?? error }
    }
    passed.closeRemaining()
    if let failure { throw failure }
    return left
  }
}
