// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Makes Dispatch open its descriptors early, while there are some left.
///
/// Dispatch opens them at their first use, and ends the process if that fails: the manager's epoll set and its eventfd
/// at the first timer or source, a timerfd at the first timer of each clock, the main queue's eventfd at the first job
/// for the main actor or when `main` calls `dispatchMain()`, which the watchdog's first check may cause. A server whose
/// clients have taken all descriptors by then would end. So the subject makes Dispatch open them before the daemon is
/// ready: it sets a timer on each clock, and waits until a last one fires.
enum DispatchPreparation {
  /// Throws if too few are left for these six, the listening thread's five, and those that the start opens meanwhile.
  static func check() throws(LifecycleError) {
    let files = (0..<16).map { _ in eventfd(0, Int32(EFD_CLOEXEC)) }
    let error = clinux_errno()
    for file in files where file >= 0 { close(file) }
    if files.contains(-1) {
      throw .system(purpose: "open the 16 descriptors of a start", errno: error)
    }
  }

  /// Begins, once in a process. It blocks until Dispatch has a thread: call it on a thread that has nothing else to do.
  static func begin() { _ = hasBegun }

  /// Returns whether they are open; waits for that for at most a second.
  static func finish() -> Bool { isDone }

  /// Rung once; never deallocated, since a timer may ring after the wait has ended.
  private static let isReady = Semaphore()
  private static let hasBegun: Void = clinux_prepare_dispatch(
    { Unmanaged<Semaphore>.fromOpaque($0!).takeUnretainedValue().signal() },
    Unmanaged.passUnretained(isReady).toOpaque())
  private static let isDone = isReady.wait(for: .seconds(1))
}
