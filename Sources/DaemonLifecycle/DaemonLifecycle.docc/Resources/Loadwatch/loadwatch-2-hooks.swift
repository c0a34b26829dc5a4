import DaemonLifecycle
import Glibc

actor Monitor: ForegroundObserver, BackgroundObserver {
  private let lifecycle: any LifecycleObservable

  init(lifecycle: any LifecycleObservable) {
    self.lifecycle = lifecycle
    lifecycle.addObserver(self)
  }

  func work() async throws {
    for try await _ in lifecycle.ticks(every: .seconds(1)) {
      printLine("load \(loadAverage())")
    }
  }

  func willEnterForeground(_ notification: WillEnterForeground) {
    printLine("working: \(notification.cause)")
  }

  func didEnterBackground(_ notification: DidEnterBackground) {
    printLine("paused: \(notification.cause)")
  }
}

func loadAverage() -> Double {
  var load = 0.0
  getloadavg(&load, 1)
  return (load * 100).rounded() / 100
}

func printLine(_ line: String) {
  print(line)
  fflush(nil)  // at once, where the output is no terminal
}
