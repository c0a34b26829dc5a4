// SPDX-License-Identifier: Apache-2.0

/// The set-up of `runAndExit`, as its task and those that it starts know it. The launch waits for it, so that it must not
/// wait for what comes after the launch.
struct SetUp: Sendable {
  @TaskLocal static var current: SetUp?
  /// After this time it is said that the daemon is still being set up.
  static let patience = Duration.seconds(5)

  let core: ObjectIdentifier
  /// Its own task, in which this is made.
  private let task = Self.task

  private static var task: Int? { withUnsafeCurrentTask { $0?.hashValue } }

  /// Whether the current task is the set-up's own, rather than one that it has started.
  var isOwnTask: Bool { task == Self.task }
}
