// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Given
import Glibc
import ServiceLifecycle

@testable import Recipes

/// A service that fails ends the daemon with status 1, or the guide's lifecycle that is another service of its group.
/// The state is saved all the same.
@main struct ServiceFails {
  struct Failure: Error {}
  struct Failing: Service {
    func run() async throws {
      await Notes.wait(for: "foreground runs")
      throw Failure()
    }
  }
  final class Orders: ForegroundObserver, SaveObserver {
    func willEnterForeground(_ notification: WillEnterForeground) { Notes.add("foreground runs") }
    func shouldSaveState(_ notification: ShouldSaveState) { Notes.add("saved") }
  }

  static func main() async throws {
    let orders = Orders()
    // The second lifecycle has the signals.
    let result = try await LifecycleSubject.run(configuration: LifecycleConfiguration(signals: [:]))
    { lifecycle in
      lifecycle.addObserver(orders)
      lifecycle.addTask(name: "services") { try await $0.run(Failing(), logger: logger) }
    }
    Notes.expect("saved")

    let service = LifecycleService { lifecycle in
      lifecycle.addObserver(orders)
      lifecycle.addForeground { try await Task.sleep(for: .seconds(3600)) }
    }
    let around = ServiceGroup(services: [service, Failing()], logger: logger)
    do { try await around.run() } catch is Failure { Notes.add("failed") }
    Notes.expect("saved", "failed")
    exit(result.exitStatus == 1 ? 0 : 1)
  }
}
