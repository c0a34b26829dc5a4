// SPDX-License-Identifier: Apache-2.0
/// The end of a run: the status to exit with, the cause, and what the last hooks did.
///
/// | status | when |
/// | --- | --- |
/// | 0 | all went well, whatever asked for the end |
/// | 1, or that of an ``ExitStatusError`` | work threw before it was asked to end |
/// | that of an ``ExitStatusError`` | a hook of the launch, or work before it was ready, threw it |
/// | the status given | ``LifecycleObservable/terminate(because:exitStatus:)`` |
/// | 70 (EX_SOFTWARE) | a hook of the launch or of the termination threw, or the daemon could not wait for events any more |
/// | 124 (as timeout(1)) | one of these hooks, or work, did not end in time or could not be called; or the stop has cut off what a pause still waited for |
/// | 128 + n | a third signal *n* cut the termination short |
///
/// The first that applies counts, in the order 128 + n, the one given, 1 or that of an error, 124, 70.
public struct LifecycleExit: Sendable, CustomStringConvertible {
  /// The status for exit(3).
  public let exitStatus: Int32
  /// The termination's report, with its cause.
  public let report: LifecycleReport
  /// The launch's report, if a hook that failed in the launch ended the daemon; else `nil`.
  package let failedLaunch: LifecycleReport?
  /// The report of a pause that was still waiting for a hook when the stop cut it off; else `nil`.
  package let overtakenPause: LifecycleReport?
  /// The error that work threw, if that ended the daemon; else `nil`.
  public let error: (any Error)?

  /// A text of several lines: the status, then the reports.
  public var description: String {
    let before = [failedLaunch, overtakenPause].compactMap { $0?.description }
    return (["exit status \(exitStatus)"] + before + ["\(report)"]).joined(separator: "\n")
  }
}
