// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Given
import Glibc
import ServiceLifecycle

@testable import Recipes

/// The guide's ServicesToTheLast: what saving needs ends after the save.
@main struct GroupToTheLast {
  final class Orders: ForegroundObserver, SaveObserver {
    func willEnterForeground(_ notification: WillEnterForeground) { Notes.add("foreground runs") }
    func shouldSaveState(_ notification: ShouldSaveState) { Notes.add("saved") }
  }

  static func main() async throws {
    let lifecycle = LifecycleSubject()
    let group = ServiceGroup(services: [database], logger: logger)
    let services = ServicesToTheLast(group, lifecycle: lifecycle)
    let orders = Orders()
    lifecycle.addObserver(orders)
    signal(SIGTERM, after: "database runs", "foreground runs")
    let result = try await lifecycle.run()
    Notes.expect("saved", "database ended")
    withExtendedLifetime(services) { exit(result.exitStatus) }
  }
}
