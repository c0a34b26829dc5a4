// SPDX-License-Identifier: Apache-2.0
// Hummingbird's runService takes signals from the subject: that is said, and both receive them.
import DaemonLifecycle
import Given
import Glibc
import Hummingbird
import Logging

@main struct HummingbirdThief {
  static func main() async throws {
    alarm(60)  // should a signal not arrive
    let log = StandardErrorFile()
    let lifecycle = LifecycleSubject()
    lifecycle.addTask {
      let router = Router()
      router.get("/") { _, _ in "well" }
      let app = Application(
        router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
        logger: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
      // Not cancelled with the body: it ends by its own SIGTERM, or never.
      let running = Task { try await app.runService() }
      await log.expect(
        "SIGTERM is also handled by a DispatchSource of this process, as ServiceGroup,")
      await log.expect(
        "SIGINT is also handled by a DispatchSource of this process, as ServiceGroup,")
      kill(getpid(), SIGTERM)
      try await running.value
      // Whichever of the two is first, the other has received it as well.
      while !Task.isCancelled { await Task.yield() }
    }
    let result = try await lifecycle.run()
    log.check(result.exitStatus == 0, "the daemon ended with \(result)")
    let cause = "\(result.report.cause)"
    log.check(cause == "SIGTERM by way of Dispatch", "the cause was: \(cause)")
  }
}
