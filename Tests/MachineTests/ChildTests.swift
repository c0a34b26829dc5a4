// SPDX-License-Identifier: Apache-2.0
import Testing

/// What Swift's threads block, their children block, and do not hear SIGTERM.
@Suite("children", .machines, .describesUnits) struct ChildTests {
  private func service(_ machine: MachineTest, _ way: String, _ timeout: Int) async throws
    -> Service
  {
    let service = try await machine.probe(
      "child \(way)", "WatchdogSec=60", "FileDescriptorStoreMax=4", "TimeoutStopSec=\(timeout)")
    try await service.start()
    return service
  }

  @Test(arguments: Release.selected)
  func aChildOfTheHelperEndsAtOnce(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await service(machine, "helper", 600)
      try await service.waitForMessage("child: SIGTERM free, variables []")
      // It would take ten minutes if the child did not hear SIGTERM.
      try await service.stop()
      #expect(try await service.show("Result") == "success")
      #expect(try await !service.journal().contains { $0.message.contains("timed out") })
    }
  }

  /// Why there is a helper; should this fail some day, there is no need for it any more.
  @Test(arguments: Release.selected)
  func anyOtherChildDoesNotHearSIGTERM(_ release: Release) async throws {
    try await release.test { machine in
      let service = try await service(machine, "raw", 1)
      let said = try await service.waitForMessage("child: SIGTERM blocked").message
      // What is not its own: it could say that the service is ready, or keep its watchdog quiet.
      #expect(said.contains("NOTIFY_SOCKET") && said.contains("WATCHDOG_USEC"))
      try await service.stop()
      #expect(try await service.show("Result") == "timeout")
    }
  }
}
