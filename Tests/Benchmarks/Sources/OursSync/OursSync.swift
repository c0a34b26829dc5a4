// SPDX-License-Identifier: Apache-2.0
import CBench
import DaemonLifecycle
import Glibc
import Stamping

/// Our package under a synchronous `main`, which gives its thread to the subject.
@main struct OursSync {
  static func main() {
    switch CommandLine.arguments.dropFirst().first {
    case "actor": stamping(StampingActor())
    case "main": stamping(MainActor.assumeIsolated { StampingOnMain() })
    default: exit(64)
    }
  }

  static func stamping(_ observer: some LifecycleObserver) -> Never {
    LifecycleSubject.runAndExit { lifecycle in
      lifecycle.addObserver(observer)
      lifecycle.addForeground {
        bench_ready()
        try await lifecycle.clock.sleep(for: .seconds(1_000_000))
      }
    }
  }
}
