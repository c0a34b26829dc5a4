// SPDX-License-Identifier: Apache-2.0

/// The set-up of `runAndExit` or `run`, as known to its task and the tasks that it starts. The launch waits for it, so
/// it must not wait for anything after the launch.
struct SetUp: Sendable {
  @TaskLocal static var current: SetUp?
  /// The time after which the log and `STATUS=` report that the daemon is still being set up.
  static let patience = Duration.seconds(5)

  let core: ObjectIdentifier
  /// The set-up's own task, in which this is made.
  private let task = Self.task

  private static var task: Int? { withUnsafeCurrentTask { $0?.hashValue } }

  /// Whether the current task is the set-up's own, rather than one that it has started.
  var isOwnTask: Bool { task == Self.task }
}
