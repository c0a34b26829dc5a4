// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Has Dispatch make its descriptors while there are some left.
///
/// It makes them when they are needed first, and ends the process where that fails: the manager's epoll set and its
/// eventfd at the first timer or source, a timerfd at the first timer of each clock, the main queue's eventfd at the
/// first job for the main actor or when `main` gives its thread away, for which the watchdog's first check may be
/// early enough. A server whose clients have taken all descriptors by then is lost. So the subject has them made
/// before the daemon is ready, a timer on each clock by ringing once.
enum DispatchPreparation {
  /// Once a process: a thread of Dispatch's begins to make them, while the caller goes on.
  static func begin() { begun }

  /// Returns when they are made; never waits for long, since there may be no thread left for them, and then they are
  /// made when there is one.
  static func finish() { _ = isDone }

  private static let begun: Void = clinux_begin_dispatch()
  private static let isDone = clinux_await_dispatch(1000)
}
