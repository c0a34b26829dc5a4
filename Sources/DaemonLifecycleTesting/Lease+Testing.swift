// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
public import DaemonLifecycleLease

extension Lease {
  /// Gives a mock the lease, as a line of its elector would, once the daemon can take it: it is launched, and nothing
  /// else keeps it in the background.
  ///
  /// ```swift
  /// configuration.interfaces.append(.pausing(without: lease))
  /// let mock = MockLifecycleSubject(configuration: configuration)
  /// lease.grant(token: "7")
  /// try await mock.waitUntilInForeground()
  /// lease.revoke()
  /// try await mock.waitUntilSettled()
  /// #expect(mock.state == .background)
  /// ```
  ///
  /// It launches the mock, as a test's other events do, unless that is left to ``MockLifecycleSubject/launch()``.
  public func grant(token: String = "1") {
    launch()
    grantToMock(token)
  }

  /// Takes the lease from a mock, as the end of its elector would.
  public func revoke() {
    launch()
    revokeFromMock()
  }

  private func launch() { daemon?.endSetUp() }
}
