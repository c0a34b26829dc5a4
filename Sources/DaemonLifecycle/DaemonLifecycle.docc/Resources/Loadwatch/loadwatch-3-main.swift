import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleState
import Glibc

@main struct Loadwatch {
  static func main() async {
    do {
      let store = try CodableStateStore<Peak>(StateStore())
      let lifecycle = LifecycleSubject()
      let monitor = Monitor(lifecycle: lifecycle, store: store)
      let result = try await lifecycle.run {
        try await lifecycle.foreground(name: "samples") { try await monitor.work() }
      }
      exit(result.code)
    } catch {
      print("loadwatch: \(error)")
      exit(71)
    }
  }
}
