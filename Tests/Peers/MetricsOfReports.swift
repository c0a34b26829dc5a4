// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Given
import Glibc
import Metrics
import MetricsTestKit

@testable import Recipes

/// The guide's metrics have a timer for each hook, and a counter of those that did not complete.
@main struct MetricsOfReports {
  actor Orders: SaveObserver {
    private var isDiskFull = true

    func shouldSaveState(_ notification: ShouldSaveState) throws {
      defer { isDiskFull = false }
      if isDiskFull { throw Full() }
    }
  }
  struct Full: Error {}

  static func main() async throws {
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    work = { lifecycle in
      lifecycle.addObserver(Orders())
      kill(getpid(), SIGUSR1)
      try await Task.sleep(for: .seconds(3600))
    }
    let save = [("observer", "Orders"), ("notification", "ShouldSaveState")]
    Task {
      // The program's time limit is the limit.
      while metrics.counters.isEmpty { await Task.yield() }
      let timer = try? metrics.expectTimer("lifecycle.hook", save)
      let problems = try? metrics.expectCounter("lifecycle.problems", save)
      guard timer?.values.count == 1, problems?.totalValue == 1, metrics.counters.count == 1 else {
        print("counters: \(metrics.counters.map(\.dimensions))")
        exit(1)
      }
      kill(getpid(), SIGTERM)
    }
    try await metricsOfReports()
  }
}
