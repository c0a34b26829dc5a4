import DaemonLifecycle
import Glibc

actor Monitor: ForegroundObserver, BackgroundObserver {
  private let lifecycle: any LifecycleObservable

  init(lifecycle: any LifecycleObservable) {
    self.lifecycle = lifecycle
  }

  func work() async throws {
    for try await _ in lifecycle.ticks(every: .seconds(1)) {
      print("load \(loadAverage())")
    }
  }

  func willEnterForeground(_ notification: WillEnterForeground) {
    print("working: \(notification.cause)")
  }

  func didEnterBackground(_ notification: DidEnterBackground) {
    print("paused: \(notification.cause)")
  }
}

func loadAverage() -> Double {
  var load = 0.0
  getloadavg(&load, 1)
  return (load * 100).rounded() / 100
}
