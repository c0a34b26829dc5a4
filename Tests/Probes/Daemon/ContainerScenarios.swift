// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// Well until a reload, which blocks every thread of the cooperative pool. The path of a liveness file is given.
let alive: @Sendable ([String]) async throws -> Void = { arguments in
  let path = arguments.first ?? ""
  var configuration = LifecycleConfiguration(livenessFile: path)
  configuration.livenessPeriod = .milliseconds(400)
  let lifecycle = loggedSubject(configuration)
  try await lifecycle.start(
    saying: "started", lifecycle.observe(ShouldReload.self) { _ in blockPool() })
}
