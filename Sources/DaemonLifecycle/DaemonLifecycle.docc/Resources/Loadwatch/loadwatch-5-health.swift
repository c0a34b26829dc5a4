import DaemonLifecycle
import DaemonLifecycleCodable
import Glibc

struct Peak: Codable, Equatable {
  var samples = 0
  var highest = 0.0
}

actor Monitor: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver,
  HealthObserver
{
  private let lifecycle: any LifecycleObservable
  private let store: CodableStateStore<Peak>?
  private let read: @Sendable () throws -> Double
  private(set) var peak = Peak()
  private var isPaused = false
  private var lastSample: LifecycleClock.Instant

  init(
    lifecycle: any LifecycleObservable, store: CodableStateStore<Peak>? = nil,
    read: @escaping @Sendable () throws -> Double = loadAverage
  ) {
    self.lifecycle = lifecycle
    self.store = store
    self.read = read
    lastSample = lifecycle.clock.now
  }

  func work() async throws {
    for try await _ in lifecycle.ticks(every: .seconds(1)) {
      let load = try read()
      lastSample = lifecycle.clock.now
      peak.samples += 1
      peak.highest = max(peak.highest, load)
      print("load \(load), sample \(peak.samples), highest \(peak.highest)")
    }
  }

  func didFinishLaunching(_ notification: DidFinishLaunching) throws {
    peak = try store?.load() ?? Peak()
  }

  func willEnterForeground(_ notification: WillEnterForeground) {
    isPaused = false
    lastSample = lifecycle.clock.now
    print("working: \(notification.cause)")
  }

  func didEnterBackground(_ notification: DidEnterBackground) {
    isPaused = true
    print("paused: \(notification.cause)")
  }

  func shouldSaveState(_ notification: ShouldSaveState) throws {
    try store?.saveIfChanged(peak)
    print("saved \(peak.samples) samples")
  }

  func checkHealth(_ notification: CheckHealth) throws {
    let age = lastSample.duration(to: lifecycle.clock.now)
    if !isPaused, age > .seconds(20) { throw Stale(age: age) }
  }

  struct Stale: Error, CustomStringConvertible {
    let age: Duration
    var description: String { "no sample for \(age.components.seconds) s" }
  }
}

func loadAverage() -> Double {
  var load = 0.0
  getloadavg(&load, 1)
  return (load * 100).rounded() / 100
}
