// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc

/// A synchronous `main` that gives its thread to the subject; observers on the main actor work.
@main struct SyncMain {
  static func main() {
    let lifecycle = LifecycleSubject()
    let observer = MainActor.assumeIsolated { Observer() }
    lifecycle.addObserver(observer)
    lifecycle.runAndExit {
      _ = observer
      try await lifecycle.clock.sleep(for: .seconds(1000))
    }
  }
}

@MainActor final class Observer: ForegroundObserver, StateObserver {
  func willEnterForeground(_ notification: WillEnterForeground) { say("foreground") }
  func shouldSaveState(_ notification: ShouldSaveState) { say("save: \(notification.cause)") }
}

func say(_ line: String) {
  var text = line + "\n"
  text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}
