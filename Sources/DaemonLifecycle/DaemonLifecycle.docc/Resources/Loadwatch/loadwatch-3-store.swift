import DaemonLifecycle
import DaemonLifecycleCodable
import Glibc

struct Peak: Codable, Equatable {
  var samples = 0
  var highest = 0.0
}

actor Monitor: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver {
  private let lifecycle: any LifecycleObservable
  private let store: CodableStateStore<Peak>?
  private(set) var peak = Peak()

  init(lifecycle: any LifecycleObservable, store: CodableStateStore<Peak>? = nil) {
    self.lifecycle = lifecycle
    self.store = store
  }

  func work() async throws {
    for try await _ in lifecycle.ticks(every: .seconds(1)) {
      let load = loadAverage()
      peak.samples += 1
      peak.highest = max(peak.highest, load)
      print("load \(load), sample \(peak.samples), highest \(peak.highest)")
    }
  }

  func didFinishLaunching(_ notification: DidFinishLaunching) throws {
    peak = try store?.load() ?? Peak()
  }

  func willEnterForeground(_ notification: WillEnterForeground) {
    print("working: \(notification.cause)")
  }

  func didEnterBackground(_ notification: DidEnterBackground) {
    print("paused: \(notification.cause)")
  }

  func shouldSaveState(_ notification: ShouldSaveState) throws {
    try store?.saveIfChanged(peak)
    print("saved \(peak.samples) samples")
  }
}

func loadAverage() -> Double {
  var load = 0.0
  getloadavg(&load, 1)
  return (load * 100).rounded() / 100
}
