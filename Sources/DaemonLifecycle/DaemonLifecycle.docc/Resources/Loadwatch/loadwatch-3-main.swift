import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState

@main struct Loadwatch {
  static func main() {
    LifecycleSubject.runAndExit { lifecycle in
      let store = try CodableStateStore<Peak>(StateStore())
      let monitor = Monitor(lifecycle: lifecycle, store: store)
      lifecycle.addObserver(monitor)
      lifecycle.addForeground(name: "samples") { try await monitor.work() }
    }
  }
}
