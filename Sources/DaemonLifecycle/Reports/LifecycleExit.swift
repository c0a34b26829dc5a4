// SPDX-License-Identifier: Apache-2.0
/// The end of a run: the status to exit with, the cause, and what the last hooks did.
///
/// | status | when |
/// | --- | --- |
/// | 0 | all went well, whatever requested the end |
/// | 1, or that of an ``ExitStatusError`` | work (`addForeground`, `addTask`) threw before a pause ended it or the termination began |
/// | that of an ``ExitStatusError`` | a hook of the launch, or work before it was ready, threw it |
/// | the status given | ``LifecycleObservable/terminate(because:exitStatus:)`` |
/// | 70 (EX_SOFTWARE) | a hook of the launch or of the termination threw; work with `readyWithin` ended before it was ready; or the daemon could not wait for events any more |
/// | 124 (as timeout(1)) | one of these hooks, or work, did not end in time or could not be called; work was not ready in time; or the stop cut off a pause that still waited |
/// | 128 + n | a third signal *n* cut the termination short |
///
/// The first that applies counts, in the order 128 + n, the given one, 1 or that of an error, 124, 70. A failed start
/// has no exit: `runAndExit` ends with the status of an ``ExitStatusError`` (73 for `StateError`, 78 for a malformed
/// grace period), else 71. Nor has a lost lease whose pause takes too long: the process ends with 70.
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
