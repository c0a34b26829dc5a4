import DaemonLifecycle
import Glibc

@main struct Loadwatch {
  static func main() async throws {
    let lifecycle = LifecycleSubject()
    let monitor = Monitor(lifecycle: lifecycle)
    let result = try await lifecycle.run {
      try await lifecycle.foreground(name: "samples") { try await monitor.work() }
    }
    exit(result.code)
  }
}
