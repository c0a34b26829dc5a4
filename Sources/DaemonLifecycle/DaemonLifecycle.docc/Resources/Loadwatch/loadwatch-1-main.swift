import DaemonLifecycle
import Glibc

@main struct Loadwatch {
  static func main() async throws {
    let lifecycle = LifecycleSubject()
    let result = try await lifecycle.run()
    exit(result.code)
  }
}
