import CBench
import DaemonLifecycle
import Glibc
import Stamping

/// Our package under an async `main`: the first argument says what it does.
@main struct Ours {
  static func main() async throws {
    switch CommandLine.arguments.dropFirst().first {
    case "actor": try await stamping(StampingActor())
    case "class": try await stamping(StampingClass())
    default: exit(64)
    }
  }

  static func stamping(_ observer: some LifecycleObserver) async throws {
    let lifecycle = LifecycleSubject()
    lifecycle.addObserver(observer)
    try await lifecycle.start()
    bench_ready()
    let result = await lifecycle.waitUntilTerminated()
    withExtendedLifetime(observer) {}
    exit(result.code)
  }
}
