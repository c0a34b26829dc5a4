import DaemonLifecycle
import Glibc

struct Peak: Codable, Equatable {
  var samples = 0
  var highest = 0.0
}

actor Monitor: ForegroundObserver, BackgroundObserver {
  private let lifecycle: any LifecycleObservable
  private(set) var peak = Peak()

  init(lifecycle: any LifecycleObservable) {
    self.lifecycle = lifecycle
  }

  func work() async throws {
    for try await _ in lifecycle.ticks(every: .seconds(1)) {
      let load = loadAverage()
      peak.samples += 1
      peak.highest = max(peak.highest, load)
      print("load \(load), sample \(peak.samples), highest \(peak.highest)")
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
