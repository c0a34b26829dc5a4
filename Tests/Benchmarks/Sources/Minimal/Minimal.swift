// SPDX-License-Identifier: Apache-2.0
import CBench
import DaemonLifecycle
import Glibc

/// The least that a daemon of ours is: what the package adds to an empty Swift program.
@main struct Minimal {
  static func main() async throws {
    let lifecycle = LifecycleSubject()
    let worker = Worker()
    lifecycle.addObserver(worker)
    let token = lifecycle.observe(DidFinishLaunching.self) { _ in bench_ready() }
    let result = try await lifecycle.run()
    withExtendedLifetime((worker, token)) {}
    exit(result.exitStatus)
  }
}

actor Worker: BackgroundObserver, HealthObserver {
  private(set) var pauses = 0
  func didEnterBackground(_ notification: DidEnterBackground) async { pauses += 1 }
  func checkHealth(_ notification: CheckHealth) async {}
}
