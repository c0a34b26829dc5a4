// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

/// systemd's words for the types of jobs, and what they mean for the unit's process.
@Suite struct UnitJobWordTests {
  @Test(
    arguments: [
      ("start", .start, false, false), ("stop", .stop, true, false),
      ("restart", .restart, true, true), ("reload", .reload, false, false),
      ("try-restart", .tryRestart, true, true),
      ("verify-active", .other("verify-active"), false, false), ("", .other(""), false, false),
    ] as [(String, UnitJob, Bool, Bool)])
  func aJobsWord(word: String, job: UnitJob, stops: Bool, restarts: Bool) {
    #expect(UnitJob(word) == job)
    #expect(job.stopsUnit == stops && job.isRestart == restarts)
  }
}
