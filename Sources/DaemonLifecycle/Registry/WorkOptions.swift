// SPDX-License-Identifier: Apache-2.0
/// What the author of a work has said of it: the constants of a member that has a body in place of hooks.
struct WorkOptions: Sendable {
  /// When a work runs, and what its end means.
  enum Form: Sendable {
    /// While the daemon is in the foreground.
    case foreground
    /// From the launch to the stop, whatever pauses the daemon.
    case throughout
    /// As `throughout`, but at once, and its end is the daemon's: the body of `run`.
    case body
  }

  var form = Form.foreground
  /// Whether it has time to finish what it has begun, rather than being cancelled.
  var drains = false
  /// How long it may take until it says that it is ready; `nil` for one that is ready as it begins.
  var readyWithin: Duration?
  /// After how long without progress it is stalled; `nil`: never.
  var stallsAfter: Duration?
  /// When it is run again after a failure; `nil`: never.
  var restarts: RestartPolicy?
  /// Whether it is expected to return before it is asked to end.
  var mayReturn = false
  /// Whether somebody waits for its end, who receives its error.
  var hasCaller = false
  /// What runs the body, which the machine only keeps.
  var runner: (any AnyObject & Sendable)?

  /// Whether it begins or ends with a step.
  func concerns(_ step: LifecycleStep) -> Bool {
    switch step {
    case .kind(.willEnterForeground), .kind(.didEnterBackground): form == .foreground
    case .workBegins: form == .throughout
    case .workEnds: form != .foreground
    default: false
    }
  }
}
