// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleState
import Glibc

/// Keeps a state in the directory given, and says how each save went; with `fork`, a child without exec outlives it.
let keepState: @Sendable ([String]) async throws -> Void = { arguments in
  let store = try StateStore(directory: arguments[0])
  let lifecycle = LifecycleSubject()
  let token = lifecycle.observe(ShouldSaveState.self) { _ in
    do { try store.save(Array("state".utf8)) } catch {
      say("not saved: \(error)")
      throw error
    }
    say("saved")
  }
  let began = lifecycle.observe(WillEnterForeground.self) { _ in say("foreground") }
  if arguments.contains("fork") {
    let child = forkThePlainWay()
    if child == 0 {
      // What tells the test that a process lives.
      for descriptor: Int32 in [1, 9] { close(descriptor) }
      alarm(120)  // should the test die
      while true { pause() }
    }
    say("child \(child)")
  }
  try await lifecycle.runToTheEnd(token, began)
}
