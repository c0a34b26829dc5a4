// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation
import Testing

/// The fake manager against systemd's own sender, where there is one.
@Suite struct RealSystemdTests {
  private static let sender = (["/usr/bin/systemd-notify", "/bin/systemd-notify"] as [String])
    .first { access($0, X_OK) == 0 }

  private func run(_ arguments: [String], _ manager: FakeServiceManager) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(filePath: try #require(RealSystemdTests.sender))
    process.arguments = arguments
    process.environment = ServiceEnvironment.current.childEnvironment(adding: manager.environment)
    try ChildProcess.withUnblockedSignals { try process.run() }
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// It ends only once its barrier has been answered.
  @Test(.enabled("there is no systemd-notify(1)") { sender != nil })
  func systemdsOwnSenderIsUnderstood() async throws {
    let manager = try FakeServiceManager()
    #expect(try run(["--ready", "--status=Grüße"], manager) == 0)
    let message = try await manager.next(containing: "READY")
    #expect(message["READY"] == "1" && message["STATUS"] == "Grüße")
    #expect(manager.service.isReady && manager.service.status == "Grüße")
    #expect(manager.service.barriers == 1)
    #expect(manager.violations == [])
  }

  @Test(.enabled("there is no systemd-notify(1)") { sender != nil })
  func itsMistakesAreSeen() throws {
    let manager = try FakeServiceManager()
    #expect(try run(["--ready"], manager) == 0)
    #expect(try run(["RELOADING=1"], manager) == 0)
    #expect(manager.violations.count == 1)
    #expect(manager.violations.first?.contains("without MONOTONIC_USEC=") == true)
    #expect(!manager.service.isReloading)
  }
}
