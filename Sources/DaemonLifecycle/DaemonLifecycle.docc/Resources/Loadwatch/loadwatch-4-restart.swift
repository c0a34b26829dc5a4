import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState
import DaemonLifecycleTesting
import Foundation
import Testing

@testable import loadwatch

@Test func aPauseStopsTheSamples() async throws {
  let mock = MockLifecycleSubject()
  let monitor = Monitor(lifecycle: mock, read: { 0.5 })
  mock.addObserver(monitor)
  mock.addForeground { try await monitor.work() }

  try await mock.waitUntilSleeping()
  await mock.advance(by: .seconds(3))
  #expect(await monitor.peak.samples == 4)  // one at once, and one each second

  try await mock.send(.sigusr1)
  await mock.advance(by: .seconds(3))
  #expect(await monitor.peak.samples == 4)

  try await mock.send(.sigterm)
  #expect(mock.exitResult?.exitStatus == 0)
}

@Test func aRestartContinuesTheCount() async throws {
  let folder = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
  defer { try? FileManager.default.removeItem(at: folder) }
  let store = try CodableStateStore<Peak>(StateStore(directory: folder.path))

  let mock = MockLifecycleSubject()
  let monitor = Monitor(lifecycle: mock, store: store, read: { 2.5 })
  mock.addObserver(monitor)
  mock.addForeground { try await monitor.work() }
  try await mock.waitUntilSleeping()
  await mock.advance(by: .seconds(2))
  try await mock.send(.sigterm)

  let next = MockLifecycleSubject()
  let restarted = Monitor(lifecycle: next, store: store)
  next.addObserver(restarted)
  try await next.waitUntilSettled()  // the launch is delivered
  #expect(await restarted.peak == Peak(samples: 3, highest: 2.5))
}
