// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
import DaemonLifecycleTesting
import DaemonSystemd
import Testing

/// A whole restart in a test: two mocks with the same service manager are two runs of a daemon.
@Suite struct MockRestartTests {
  /// Counts what it reads from its connection, and goes on counting in the next run.
  private final class Counter: TerminationObserver {
    private let lifecycle: any LifecycleObservable
    private let connection: Int32
    private let count: UInt8

    /// - Parameter accepted: A connection, in the run that accepts one.
    init(_ lifecycle: any LifecycleObservable, accepted: Int32? = nil) throws {
      self.lifecycle = lifecycle
      if let accepted {
        connection = accepted
        try lifecycle.preservation.preserve(accepted, named: "c1")
      } else if let kept = try lifecycle.preservation.preserved(named: "c1", as: .stream) {
        connection = kept.release()
      } else {
        connection = -1
      }
      count = try lifecycle.preservation.preservedBytes(named: "count")?.first ?? 0
      try lifecycle.preservation.forget(named: "count")
      lifecycle.addObserver(self)
    }

    deinit { close(connection) }

    func willTerminate(_ notification: WillTerminate) throws {
      var buffer = [UInt8](repeating: 0, count: 64)
      let read = recv(connection, &buffer, 64, Int32(MSG_DONTWAIT))
      try lifecycle.preservation.preserve([count + UInt8(max(0, read))], named: "count")
      try lifecycle.preservation.barrier()
    }
  }

  @Test func connectionsAndBytesOutliveTheMock() async throws {
    let manager = try FakeServiceManager()
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC, 0, &ends) == 0)
    defer { close(ends[1]) }
    for run in 0..<3 {
      let mock = MockLifecycleSubject(serviceManager: manager)
      let counter = try Counter(mock, accepted: run == 0 ? ends[0] : nil)
      #expect(send(ends[1], "ab", 2, 0) == 2)
      let report = try await mock.send(.sigterm)
      #expect(report.problems.isEmpty)
      withExtendedLifetime(counter) {}
    }
    let last = MockLifecycleSubject(serviceManager: manager)
    #expect(try last.preservation.preservedBytes(named: "count") == [6])
    #expect(try last.preservation.names(prefix: "c") == ["c1"])
    #expect(manager.violations == [])
  }

  /// What it stores is for the next, though it asks late.
  @Test func aMockIsPassedWhatWasThereWhenItBegan() throws {
    let manager = try FakeServiceManager()
    let first = MockLifecycleSubject(serviceManager: manager)
    let second = MockLifecycleSubject(serviceManager: manager)
    try first.preservation.preserve([1], named: "state")
    #expect(try second.preservation.preservedBytes(named: "state") == nil)
    #expect(
      try MockLifecycleSubject(serviceManager: manager).preservation.preservedBytes(named: "state")
        == [1])
  }

  @Test func withoutAManagerNothingIsKept() throws {
    let mock = MockLifecycleSubject()
    try mock.preservation.preserve([1], named: "state")
    #expect(try mock.preservation.names() == [])
  }

  /// Nothing of the environment is looked at by one that is to use nothing of systemd.
  @Test func aSubjectThatIsOffHasNoStore() throws {
    let manager = try FakeServiceManager()
    var configuration = LifecycleConfiguration()
    configuration.systemd = .off
    configuration.systemd.environment = ServiceEnvironment(manager.environment)
    let preservation = try LifecycleSubject(configuration: configuration).preservation
    try preservation.preserve([1], named: "state")
    #expect(preservation.limit == 0 && manager.messages == [])
  }
}
