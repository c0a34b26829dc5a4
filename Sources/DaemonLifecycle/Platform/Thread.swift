// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// Detached POSIX threads with an empty signal mask, or with all signals blocked.
///
/// The mask is set, not inherited: a thread created from one of Dispatch's would block SIGTERM, as would every child
/// process that a hook starts.
package enum Thread {
  /// Starts a thread. Returns false when the system has none left (pthread_create(3) failed).
  package static func spawn(
    named name: StaticString, blocksSignals: Bool = false, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let context = Unmanaged.passRetained(
      Start(name: name, blocksSignals: blocksSignals, body: body))
    let failure = clinux_start_thread(
      { raw in
        // The pointer is the one retained above; it is released exactly once, here.
        let start = Unmanaged<Start>.fromOpaque(raw!).takeRetainedValue()
        var mask = sigset_t()
        if start.blocksSignals { sigfillset(&mask) } else { sigemptyset(&mask) }
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        clinux_name_this_thread(start.name.utf8Start)
        start.body()
        return nil
      }, context.toOpaque())
    if failure != 0 { context.release() }
    return failure == 0
  }

  private final class Start: Sendable {
    let name: StaticString
    let blocksSignals: Bool
    let body: @Sendable () -> Void
    init(name: StaticString, blocksSignals: Bool, body: @escaping @Sendable () -> Void) {
      (self.name, self.blocksSignals, self.body) = (name, blocksSignals, body)
    }
  }
}

/// A counting semaphore (sem_init(3)), on which parked threads wait.
package final class Semaphore: Sendable {
  /// Points to a sem_t that this object owns: it must not move, and its functions are thread-safe according to POSIX.
  nonisolated(unsafe) private let pointer: UnsafeMutablePointer<sem_t>

  package init() {
    pointer = .allocate(capacity: 1)
    sem_init(pointer, 0, 0)
  }

  deinit {
    sem_destroy(pointer)
    pointer.deallocate()
  }

  package func signal() { sem_post(pointer) }

  package func wait() {
    while sem_wait(pointer) != 0 {}  // EINTR only
  }

  /// Waits with a time-out. Returns false when the time is over.
  package func wait(for duration: Duration) -> Bool {
    let deadline = MonotonicTime.now().advanced(by: duration)
    while clinux_wait_until(pointer, deadline.nanoseconds) != 0 {
      if clinux_errno() != EINTR { return false }
    }
    return true
  }
}
