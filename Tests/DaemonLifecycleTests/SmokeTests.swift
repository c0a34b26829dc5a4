import DaemonLifecycle
import DaemonLifecycleTesting
import Testing

actor Poller: BackgroundObserver, StateObserver, ForegroundObserver {
  var log: [String] = []
  func willEnterForeground(_ notification: WillEnterForeground) { log.append("fg") }
  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    log.append("bg \(notification.cause)")
  }
  func shouldSaveState(_ notification: ShouldSaveState) async throws { log.append("save") }
}

@Test func smoke() async throws {
  let mock = MockLifecycleSubject()
  let poller = Poller()
  mock.addObserver(poller)
  let report = await mock.send(.sigusr1)
  print(report)
  print(await poller.log)
  print(await mock.send(.sigusr2))
  print(await mock.send(.sigterm))
  print(mock.exit as Any)
  try mock.checkNothingPending()
}
