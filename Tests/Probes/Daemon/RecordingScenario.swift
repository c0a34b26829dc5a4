// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Glibc
import Synchronization

/// The daemon of the recording in README, `.ci/record`: its cache hangs in its second save.
let recording: @Sendable ([String]) async throws -> Void = { _ in
  let configuration = LifecycleConfiguration(
    hookTimeout: .seconds(2), stopTimeout: .seconds(10), logging: .timelines)
  let end = try await LifecycleSubject.run(configuration: configuration) { lifecycle in
    lifecycle.addObserver(Cache())
    lifecycle.addObserver(Orders())
    let poller = Poller()
    lifecycle.addObserver(poller)
    lifecycle.addForeground(name: "polling") { try await poller.work(lifecycle) }
  }
  exit(end.exitStatus)
}

private actor Poller: BackgroundObserver, SaveObserver {
  private var polls = 0

  func work(_ lifecycle: any LifecycleObservable) async throws {
    for try await _ in lifecycle.ticks(every: .milliseconds(250)) { polls += 1 }
  }
  func didEnterBackground(_ notification: DidEnterBackground) {
    Journal.writeLine("paused: \(notification.cause)")
  }
  func shouldSaveState(_ notification: ShouldSaveState) { Journal.writeLine("saving \(polls)") }
}

private actor Orders: SaveObserver {
  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await Task.sleep(for: .milliseconds(600))
  }
}

private final class Cache: SaveObserver {
  private let saves = Atomic(0)

  func shouldSaveState(_ notification: ShouldSaveState) {
    if saves.add(1, ordering: .relaxed).oldValue > 0 { while true { sleep(1) } }
  }
}
