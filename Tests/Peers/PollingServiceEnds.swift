// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Given
import Glibc
import ServiceLifecycle

@testable import Recipes

/// The guide's PollingService above a service that must outlive it. The group ends because a third one has ended, or
/// because of a SIGTERM: neither is a failure, and the lower service is shut down rather than cancelled.
@main struct PollingServiceEnds {
  struct EndsAfterThePoll: Service {
    func run() async throws { await Notes.wait(for: "polled") }
  }

  static func end(_ services: [ServiceGroupConfiguration.ServiceConfiguration]) async throws
    -> Int32
  {
    let lifecycle = LifecycleSubject()
    defer { lifecycle.restoreSignals() }
    let polling = PollingService(lifecycle: lifecycle) {
      Notes.add("polled")
      try await Task.sleep(for: .seconds(3600))
    }
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: database), .init(service: polling)] + services, logger: logger))
    return try await lifecycle.run { try await group.runUntilCancelled() }.code
  }

  static func main() async throws {
    let byService = try await end([
      .init(service: EndsAfterThePoll(), successTerminationBehavior: .gracefullyShutdownGroup)
    ])
    Notes.expect("polled", "database ended")
    signal(SIGTERM, after: "polled")
    let bySignal = try await end([])
    Notes.expect("polled", "database ended")
    print("status \(byService) and \(bySignal)")
    exit(byService + bySignal)
  }
}
