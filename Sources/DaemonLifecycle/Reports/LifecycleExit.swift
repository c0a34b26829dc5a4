// SPDX-License-Identifier: Apache-2.0
/// How a run ended: the status to exit with, why, and what the last hooks did.
///
/// | code | when |
/// | --- | --- |
/// | 0 | all went well, whatever asked for the end |
/// | 1 | the body of `run` threw |
/// | 70 (EX_SOFTWARE) | a hook of the launch or of the termination threw |
/// | 124 (as timeout(1)) | one of these hooks, or the body, did not end in time or could not be called; or the stop has cut off what a pause still waited for |
/// | 143 (128 + SIGTERM) | it was killed, and ``SystemdConfiguration/exitsWithFailureWhenKilled`` is set |
/// | 128 + n | a third signal *n* cut the termination short |
///
/// The first that applies, in the order 128 + n, 1, 124, 70, 143. An observer that is gone is no failure.
public struct LifecycleExit: Sendable, CustomStringConvertible {
  /// The status for exit(3).
  public let code: Int32
  /// The cause of the termination.
  public let cause: LifecycleCause
  /// The termination's report.
  public let report: LifecycleReport
  /// The launch's report, if a hook that failed there ended the daemon.
  public let failedLaunch: LifecycleReport?
  /// The report of the pause that the stop has overtaken, if it cut off what that still waited for.
  public let overtakenPause: LifecycleReport?
  /// The error of the body of `run`, if that ended the run.
  public let error: (any Error)?
  /// Whether the daemon has ended with status 143 because somebody other than the service manager killed it, where
  /// ``SystemdConfiguration/exitsWithFailureWhenKilled`` is set. ``cause`` says who.
  public let wasKilled: Bool

  package init(
    code: Int32, cause: LifecycleCause, report: LifecycleReport, failedLaunch: LifecycleReport?,
    overtakenPause: LifecycleReport? = nil, error: (any Error)?, wasKilled: Bool = false
  ) {
    self.code = code
    self.cause = cause
    self.report = report
    self.failedLaunch = failedLaunch
    self.overtakenPause = overtakenPause
    self.error = error
    self.wasKilled = wasKilled
  }

  /// The code, and the kill if it was one, then the reports.
  public var description: String {
    let before = [failedLaunch, overtakenPause].compactMap { $0?.description }
    let status = "exit status \(code)" + (wasKilled ? ": \(reason)" : "")
    return ([status] + before + ["\(report)"]).joined(separator: "\n")
  }

  /// The cause, and what is wrong with it.
  var reason: String {
    wasKilled ? "killed by \(cause), not stopped by the service manager" : "\(cause)"
  }

  /// As a shell has it for what SIGTERM has ended.
  static let killedCode: Int32 = 143

  static func code(bodyFailed: Bool, severity: Int) -> Int32 {
    if bodyFailed { return 1 }
    return [0, 70, 124][severity]
  }
}
