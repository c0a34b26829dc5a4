// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Given
import Glibc
import Logging

@testable import Recipes

/// The guide's log handler writes lines with priorities where standard error is the journal's: with the cause in a hook,
/// and those for debugging once they are switched on.
@main struct JournalLog {
  static func main() async throws {
    let lines = StandardErrorFile()
    var status = stat()
    fstat(2, &status)
    setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino)", 1)
    work = { _ in
      let logger = Logger(label: "mydaemon")
      logger.debug("not shown")
      JournalLogHandler.isVerbose.store(true, ordering: .relaxed)
      logger.debug("shown", metadata: ["b": "2", "a": "1"])
      logger.error("no answer")
      kill(getpid(), SIGUSR1)
      try await Task.sleep(for: .seconds(3600))
    }
    Task {
      await lines.expect("<7>shown a=1 b=2")
      await lines.expect("<3>no answer")
      await lines.expect("<6>paused cause=SIGUSR1 from pid \(getpid()) uid \(getuid())\n")
      lines.refuse("not shown")
      kill(getpid(), SIGTERM)
    }
    try journalLog()
  }
}
