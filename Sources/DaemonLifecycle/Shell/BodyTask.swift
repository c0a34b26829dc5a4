// SPDX-License-Identifier: Apache-2.0

/// The task of a body, which begins once Swift's pool has a thread for it: never, if it is cancelled before.
enum BodyTask {
  case waiting
  /// It is being made.
  case beginning
  case running(Task<Void, Never>)
  case cancelled

  var isWaiting: Bool { if case .waiting = self { true } else { false } }
  var isCancelled: Bool { if case .cancelled = self { true } else { false } }
  var running: Task<Void, Never>? { if case .running(let task) = self { task } else { nil } }

  /// Returns whether the task is to be made, by the caller alone.
  mutating func begin() -> Bool {
    guard case .waiting = self else { return false }
    self = .beginning
    return true
  }

  /// Returns whether it was cancelled while it was made, and the caller has to do that.
  mutating func run(as task: Task<Void, Never>) -> Bool {
    guard case .beginning = self else { return isCancelled }
    self = .running(task)
    return false
  }

  /// Returns what it was until now. The caller cancels one that runs, and ends one that never begins.
  mutating func cancel() -> BodyTask {
    defer { self = .cancelled }
    return self
  }
}
