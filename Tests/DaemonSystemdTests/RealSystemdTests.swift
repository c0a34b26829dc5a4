// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import Testing

/// The fake manager against systemd's own sender, where there is one.
@Suite struct RealSystemdTests {
  private static let sender = (["/usr/bin/systemd-notify", "/bin/systemd-notify"] as [String])
    .first { access($0, X_OK) == 0 }

  /// It ends only once its barrier has been answered.
  @Test(.enabled("there is no systemd-notify(1)") { sender != nil })
  func systemdsOwnSenderIsUnderstood() async throws {
    let manager = try FakeServiceManager()
    let process = Process()
    process.executableURL = URL(filePath: try #require(RealSystemdTests.sender))
    process.arguments = ["--ready", "--status=Grüße"]
    process.environment = ServiceEnvironment.current.childEnvironment(adding: manager.environment)
    try ChildProcess.withUnblockedSignals { try process.run() }
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    let message = try await manager.next(containing: "READY")
    #expect(message["READY"] == "1" && message["STATUS"] == "Grüße")
    #expect(manager.service.isReady && manager.service.statusText == "Grüße")
    #expect(manager.service.barriers == 1)
    #expect(manager.violations == [])
  }
}
