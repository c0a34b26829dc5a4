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
      lifecycle.addObserver(Ready())
    }
  }

  /// Once, and not with each foreground: what follows on the channel are stamps.
  private final class Ready: LaunchObserver {
    func didFinishLaunching(_ notification: DidFinishLaunching) { bench_ready() }
  }
}
