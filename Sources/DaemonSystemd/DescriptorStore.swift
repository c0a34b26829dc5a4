// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The place where the service manager keeps descriptors for the next run of the service (`FileDescriptorStoreMax=`;
/// systemd 219).
///
/// ```swift
/// let store = try DescriptorStore(ServiceEnvironment.current)
/// try store.store(listener, named: "http")  // its number
/// ```
///
/// It outlives a restart of the service and a crash, not a stop, unless the unit has `FileDescriptorStorePreserve=yes`
/// (254). The next run gets the descriptors by ``PassedDescriptors``. To give one up, remove it and close it: as
/// long as the manager has its duplicate, closing alone does not hang up on a peer.
///
/// That something was sent does not mean that it was kept: a full store drops what comes, with a line in the journal.
/// Before exiting, wait with ``NotifySocket/barrier(timeout:)``. Safe to use from any thread.
public struct DescriptorStore: Sendable {
  let notify: NotifySocket

  /// How many descriptors fit; 0 when the service has no store (`FDSTORE` is unset, or there is no service manager).
  public let limit: Int

  /// What became of a request.
  public enum Result: Sendable, Hashable {
    /// It is in the manager's queue.
    case sent
    /// The service has no store, and nothing was sent.
    case noStore
  }

  /// The store that the environment describes.
  ///
  /// - Throws: `malformedVariable` for `NOTIFY_SOCKET` or `FDSTORE`.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    self.init(
      notify: try NotifySocket(address: try environment.notifySocket),
      limit: try environment.fdStoreLimit ?? 0)
  }

  /// A store with `limit` places behind a notify socket.
  public init(notify: NotifySocket, limit: Int) {
    self.notify = notify
    self.limit = notify.hasServiceManager ? max(0, limit) : 0
  }

  /// Has the manager keep a duplicate of a descriptor, which stays yours.
  ///
  /// What is stored already, under whatever name, is not stored again.
  ///
  /// - Parameters:
  ///   - descriptor: An open descriptor.
  ///   - name: 1 to 255 ASCII characters without control characters and ':'. Several descriptors may share it.
  ///   - polled: Whether the manager drops it once its peer hangs up or it has an error. Use `false` (246) for what
  ///     always looks like that, such as some devices.
  ///   - timeout: How long to wait while the manager's queue is full.
  /// - Returns: Whether the request was sent; not whether the manager has kept the descriptor.
  /// - Throws: `invalidArgument` for the name, `system` for a descriptor that is not open, `timedOut`.
  @discardableResult
  public func store(
    _ descriptor: Int32, named name: String, polled: Bool = true, timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> Result {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return .noStore }
    do throws(SystemdError) {
      try notify.send(
        [.storeDescriptors(name: name, polled: polled)], descriptors: [descriptor], timeout: timeout
      )
    } catch .system(_, EBADF) {
      throw .system("store descriptor \(descriptor) as \"\(name)\"", errno: EBADF)
    }
    return .sent
  }

  /// Has the manager close all descriptors of this name (236).
  ///
  /// - Throws: `invalidArgument` for the name, `system`, `timedOut`.
  @discardableResult
  public func remove(
    named name: String, timeout: Duration = .seconds(5)
  ) throws(SystemdError) -> Result {
    _ = try DescriptorName.checked(name)
    guard limit > 0 else { return .noStore }
    try notify.send([.removeDescriptors(name: name)], timeout: timeout)
    return .sent
  }
}
