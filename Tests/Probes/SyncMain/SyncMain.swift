// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Glibc

/// A synchronous `main` that gives its thread to the subject; observers on the main actor work. `raises` is what the
/// configuration does, the other arguments are what the set-up does.
@main struct SyncMain {
  static func main() {
    say("main")
    LifecycleSubject.runAndExit(configuration: try configuration()) { lifecycle in
      switch CommandLine.arguments.last {
      case "waits":
        say("waits")
        do { try await lifecycle.clock.sleep(for: .seconds(1000)) } catch { say("cancelled") }
      case "blocks":
        await withTaskCancellationHandler {
          say("waits")
          try? await lifecycle.clock.sleep(for: .seconds(1000))
        } onCancel: {
          say("blocks")
          while true { pause() }
        }
      case "throws": throw NoTable()
      case "posts":
        let observer = Observer()
        lifecycle.addObserver(observer)
        lifecycle.observe(IsSetUp.self, owner: observer) { _, _ in
          say("received in \(lifecycle.state)")
        }
        let report = await lifecycle.post(IsSetUp())
        say("posted to \(report.entries.count)")
      case "foreground": try await lifecycle.foreground { say("in the foreground") }
      // Not the set-up's own, which goes on.
      case "starts":
        Task { try await lifecycle.foreground { say("in the foreground") } }
      default: lifecycle.addObserver(Observer())
      }
    }
  }
}

private func configuration() throws -> LifecycleConfiguration {
  switch CommandLine.arguments.last {
  case "raises": kill(getpid(), SIGTERM)
  case "misconfigured": throw NoTable()
  default: break
  }
  var configuration = LifecycleConfiguration()
  if CommandLine.arguments.contains("log-blocks") {
    configuration.interfaces.append(.log { _ in while true { pause() } })
  }
  return configuration
}

struct NoTable: ExitStatusError, CustomStringConvertible {
  let description = "There is no table."
  var exitStatus: Int32 { 78 }
}

struct IsSetUp: CustomNotification {}

@MainActor final class Observer: ForegroundObserver, SaveObserver {
  func willEnterForeground(_ notification: WillEnterForeground) { say("foreground") }
  func shouldSaveState(_ notification: ShouldSaveState) { say("save: \(notification.cause)") }
}

func say(_ line: String) {
  var text = line + "\n"
  text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}
