// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc

/// `memory COUNT`: posts, observers that come and go without being removed, and toggles, so many of each, and
/// all of that six times; says what is resident after each: `posts 8123 kB`.
let memory: @Sendable ([String]) async throws -> Void = { arguments in
  let count = Int(arguments.first ?? "") ?? 100_000
  let lifecycle = LifecycleSubject(configuration: LifecycleConfiguration(logging: .off))
  lifecycle.addObserver(Counter())
  let load = MemoryLoad(lifecycle: lifecycle)
  let result = try await lifecycle.untilReturned {
    for _ in 0..<6 {
      await load.post(count)
      say("posts \(allocatedKilobytes()) kB")
      await load.comeAndGo(count)
      say("observers \(allocatedKilobytes()) kB")
      await load.toggle(count * 3 / 10)
      say("toggles \(allocatedKilobytes()) kB")
    }
  }
  exit(result.exitStatus)
}

private struct MemoryLoad: Sendable {
  let lifecycle: LifecycleSubject

  func post(_ count: Int) async { for _ in 0..<count { await lifecycle.post(Marker()) } }

  func comeAndGo(_ count: Int) async {
    for number in 0..<count {
      lifecycle.addObserver(weakly: Counter())
      if number % 100 == 0 { await lifecycle.post(Marker()) }
    }
    await lifecycle.post(Marker())
  }

  func toggle(_ count: Int) async {
    for number in 0..<count {
      if number.isMultiple(of: 2) {
        lifecycle.pause(for: .operator)
      } else {
        lifecycle.resume(for: .operator)
      }
      // Delivered after what was asked for before.
      await lifecycle.post(Marker())
    }
  }
}

private final class Counter: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver {
  func didFinishLaunching(_ notification: DidFinishLaunching) {}
  func willEnterForeground(_ notification: WillEnterForeground) {}
  func didEnterBackground(_ notification: DidEnterBackground) {}
  func shouldSaveState(_ notification: ShouldSaveState) {}
}
