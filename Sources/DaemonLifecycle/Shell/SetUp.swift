// SPDX-License-Identifier: Apache-2.0

/// The set-up of `runAndExit`, as its task and those that it starts know it. The launch waits for it, so that it must not
/// wait for what comes after the launch.
struct SetUp: Sendable {
  @TaskLocal static var current: SetUp?
  /// After this time, it is said that the daemon is still being set up.
  static let patience = Duration.seconds(5)

  private let core: ObjectIdentifier
  private let task: Int?

  /// Made in the set-up's own task.
  init(of core: LifecycleCore) {
    self.core = ObjectIdentifier(core)
    task = Self.task
  }

  private static var task: Int? { withUnsafeCurrentTask { $0?.hashValue } }

  /// Whether the current task is that of the set-up, or began in it; the daemon may have been launched since.
  static func isCurrent(of core: LifecycleCore) -> Bool {
    current?.core == ObjectIdentifier(core)
  }

  /// Whether the current task is the set-up's own.
  static func isOwnTask(of core: LifecycleCore) -> Bool {
    isCurrent(of: core) && current?.task == task
  }
}
