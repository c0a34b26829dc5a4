import DaemonLifecycle
import DaemonLifecycleTesting
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
