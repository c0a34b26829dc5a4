// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

/// systemd's words for the types of jobs, and what they mean for the unit's process.
@Suite struct UnitJobWordTests {
  @Test(
    arguments: [
      ("stop", .stop, false), ("restart", .restart, true), ("try-restart", .tryRestart, true),
      ("verify-active", UnitJob(rawValue: "verify-active"), false),
      ("", UnitJob(rawValue: ""), false),
    ] as [(String, UnitJob, Bool)])
  func aJobsWord(word: String, job: UnitJob, restarts: Bool) {
    #expect(UnitJob(rawValue: word) == job && job.isRestart == restarts)
  }
}
