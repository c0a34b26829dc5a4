// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc

final class Observer: ForegroundObserver, SaveObserver {
  func willEnterForeground(_ notification: WillEnterForeground) { say("foreground") }
  func shouldSaveState(_ notification: ShouldSaveState) { say("save: \(notification.cause)") }

  func say(_ line: String) {
    var text = line + "\n"
    text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
  }
}

let lifecycle = LifecycleSubject()
let observer = Observer()
lifecycle.addObserver(observer)
let result = try await lifecycle.run()
exit(result.exitStatus)
