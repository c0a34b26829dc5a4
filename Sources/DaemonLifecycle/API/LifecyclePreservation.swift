public import DaemonSystemd

// What outlives a restart, for components that know no more than the lifecycle: with a mock and a fake service manager
// their tests play restarts without systemd.
extension LifecycleObservable {
  /// The descriptors and bytes that the service manager keeps between two runs.
  ///
  ///     let listener = try lifecycle.preservation.preserved(named: "http", as: .listeningStream)
  ///     try lifecycle.preservation.closeUnknown()
  ///
  /// The first use takes over what systemd has passed to this process, so let it be early. It can be taken over once: not
  /// by `PassedDescriptors.take()` as well, nor by a second subject.
  ///
  /// Without systemd nothing is there, and nothing is kept. A mock has what an earlier mock with the same
  /// `FakeServiceManager` has preserved.
  public var preservation: Preservation {
    get throws(SystemdError) { try core.preservation.get() }
  }

  /// Has the service manager keep a duplicate of a descriptor, which stays yours, for the next run; as
  /// `Preservation.preserve(_:named:polled:timeout:)`.
  ///
  ///     try lifecycle.preserve(connection.rawValue, named: "c17")
  @discardableResult
  public func preserve(
    _ descriptor: Int32, named name: String, polled: Bool = true
  ) throws(SystemdError) -> DescriptorStore.Result {
    try preservation.preserve(descriptor, named: name, polled: polled)
  }

  /// Has the service manager keep bytes for the next run, in place of what it has under this name; as
  /// `Preservation.preserve(_:named:timeout:)`.
  @discardableResult
  public func preserve(
    _ bytes: [UInt8], named name: String
  ) throws(SystemdError) -> DescriptorStore.Result {
    try preservation.preserve(bytes, named: name)
  }

  /// Hands out what an earlier run, or a socket unit, has left under this name; `nil` when there is none.
  ///
  /// - Throws: `wrongKind` when it is something else; then it stays.
  public func preserved(
    named name: String, as use: DescriptorUse
  ) throws(SystemdError) -> OwnedDescriptor? {
    try preservation.preserved(named: name, as: use)
  }

  /// The bytes that an earlier run has preserved under this name; `nil` when there are none.
  public func preservedBytes(
    named name: String, limit: Int = OwnedDescriptor.memoryLimit
  ) throws(SystemdError) -> [UInt8]? {
    try preservation.preservedBytes(named: name, limit: limit)
  }

  /// Has the service manager give up everything of this name.
  @discardableResult
  public func forget(named name: String) throws(SystemdError) -> DescriptorStore.Result {
    try preservation.forget(named: name)
  }
}
