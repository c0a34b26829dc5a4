/// How a run ended: the status to exit with, why, and what the last hooks did.
///
/// | code | when |
/// | --- | --- |
/// | 0 | all went well, whatever asked for the end |
/// | 1 | the body of `run` threw |
/// | 70 (EX_SOFTWARE) | a hook of the launch or of the termination threw |
/// | 124 (as timeout(1)) | one of these hooks, or the body, did not end in time or could not be called |
/// | 128 + n | a third signal *n* cut the termination short |
///
/// The first that applies, in the order 128 + n, 1, 124, 70. An observer that is gone is no failure.
public struct LifecycleExit: Sendable, CustomStringConvertible {
  /// The status for exit(3).
  public let code: Int32
  /// The cause of the termination.
  public let cause: LifecycleCause
  /// The termination's report.
  public let report: LifecycleReport
  /// The launch's report, if a hook that failed there ended the daemon.
  public let failedLaunch: LifecycleReport?
  /// The error of the body of `run`, if that ended the run.
  public let error: (any Error)?

  package init(
    code: Int32, cause: LifecycleCause, report: LifecycleReport, failedLaunch: LifecycleReport?,
    error: (any Error)?
  ) {
    self.code = code
    self.cause = cause
    self.report = report
    self.failedLaunch = failedLaunch
    self.error = error
  }

  /// The code, then the reports.
  public var description: String {
    let launch = failedLaunch.map { ["\($0)"] } ?? []
    return (["exit status \(code)"] + launch + ["\(report)"]).joined(separator: "\n")
  }

  static func code(bodyFailed: Bool, severity: Int) -> Int32 {
    if bodyFailed { return 1 }
    return [0, 70, 124][severity]
  }
}
