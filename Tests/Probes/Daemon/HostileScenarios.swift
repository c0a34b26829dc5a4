// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleState
import Glibc

/// Keeps a state in the directory given, and says how each save went.
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
  try await lifecycle.runToTheEnd(token, began)
}
