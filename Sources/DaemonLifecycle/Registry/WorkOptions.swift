// SPDX-License-Identifier: Apache-2.0
/// The constants of a work: a member that has a body in place of hooks.
struct WorkOptions: Sendable {
  /// When a work runs.
  enum Form: Sendable {
    /// While the daemon is in the foreground.
    case foreground
    /// From the launch to the stop, whatever pauses the daemon.
    case task
  }

  var form = Form.foreground
  /// Whether it has time to finish what it has begun, rather than being cancelled.
  var drains = false
  /// How long it may take until it says that it is ready; `nil` for one that is ready as it begins.
  var readyWithin: Duration?
  /// After how long without progress it is stalled; `nil`: never.
  var stallsAfter: Duration?
  /// Whether a wait for its next tick, element or job does not count as time without progress.
  var mayIdle = false
  /// When it is run again after a failure; `nil`: never.
  var restarts: RestartPolicy?
  /// Whether it is expected to return before it is asked to end.
  var mayReturn = false
  /// Whether a caller waits for its end, and receives its error.
  var hasCaller = false
  /// The object that runs the body, kept for the shell.
  var runner: (any AnyObject & Sendable)?

  /// Whether it begins or ends with a step.
  func concerns(_ step: LifecycleStep) -> Bool {
    switch step {
    case .kind(.willEnterForeground), .kind(.didEnterBackground): form == .foreground
    case .workBegins, .workEnds: form == .task
    default: false
    }
  }
}
