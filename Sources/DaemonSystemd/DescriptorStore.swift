// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The descriptor store, in which the service manager keeps descriptors for the next run of the service
/// (`FileDescriptorStoreMax=`; systemd 219).
///
/// ```swift
/// let store = try DescriptorStore(ServiceEnvironment.current)
/// try store.store(listener, named: "http")  // its number
/// ```
///
/// The store survives a restart of the service and a crash; it survives a stop only if the unit has
/// `FileDescriptorStorePreserve=yes` (systemd 254). The next run receives the descriptors through
/// ``PassedDescriptors``. To end a stored connection, remove it from the store and close it: while the manager has its
/// duplicate, closing alone does not hang up.
///
/// A descriptor that was sent may not be kept: a full store drops new ones, with a line in the journal. Before exiting,
/// wait with ``NotifySocket/barrier(timeout:)``. Safe to use from any thread.
public struct DescriptorStore: Sendable {
  let notify: NotifySocket

  /// The number of descriptors that the store can hold; 0 when the service has no store (`FDSTORE` is unset, or there
  /// is no service manager).
  public let limit: Int

  /// The result of a request.
  public enum Result: Sendable, Hashable {
    /// The request is in the manager's queue.
    case sent
    /// The service has no store, and nothing was sent.
    case noStore
  }

  /// Makes the store that an environment describes.
  ///
  /// - Throws: `malformedVariable` for `NOTIFY_SOCKET` or `FDSTORE`.
  public init(_ environment: ServiceEnvironment) throws(SystemdError) {
    self.init(
      notify: try NotifySocket(address: try environment.notifySocket),
      limit: try environment.fdStoreLimit ?? 0)
  }

  /// Makes a store that is reached through a notify socket.
  ///
  /// - Parameters:
  ///   - notify: The socket.
  ///   - limit: The number of descriptors that the store can hold.
  public init(notify: NotifySocket, limit: Int) {
    self.notify = notify
    self.limit = notify.hasServiceManager ? max(0, limit) : 0
  }

  /// Sends a duplicate of a descriptor to the store. The caller keeps the descriptor itself.
  ///
  /// A descriptor that is stored already, under any name, is not stored again.
  ///
  /// - Parameters:
  ///   - descriptor: An open descriptor.
  ///   - name: 1 to 255 ASCII characters without control characters and ':'. Several descriptors may share it.
  ///   - polled: Whether the manager removes the descriptor once its peer hangs up or it has an error. Default true.
  ///     Use `false` (systemd 246) for descriptors that always poll as such, as those of some devices.
  ///   - timeout: How long to wait while the manager's queue is full. Default 5 s.
  /// - Returns: Whether the request was sent, which does not mean that the manager has kept the descriptor.
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

  /// Removes all descriptors of a name: the manager closes its duplicates (systemd 236).
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - timeout: How long to wait while the manager's queue is full. Default 5 s.
  /// - Returns: Whether the request was sent.
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
