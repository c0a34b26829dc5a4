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
  let result = try await lifecycle.run()
  withExtendedLifetime((token, began)) {}
  finish(result)
}

/// A hook fails with a text that somebody else has chosen.
let hostileError: @Sendable ([String]) async throws -> Void = { _ in
  struct Hostile: Error, CustomStringConvertible {
    let description = "refused\n<0>lifecycle: all is well\u{1b}[2J\u{202e}"
  }
  let lifecycle = LifecycleSubject()
  let token = lifecycle.observe(ShouldSaveState.self) { _ in throw Hostile() }
  let began = lifecycle.observe(WillEnterForeground.self) { _ in say("foreground") }
  let result = try await lifecycle.run()
  withExtendedLifetime((token, began)) {}
  exit(result.code)
}
