// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A waker of the listening thread, which may be used on any thread and in a signal handler.
///
/// Other code of the process may close its descriptors, and their numbers may be reused. It writes to a number only
/// after it has verified that its own descriptor is behind it; otherwise a signal ends the listening thread's wait, and
/// `isLost` is set.
final class Waker: Sendable {
  /// Freed by the deinit only; it points to atomics.
  nonisolated(unsafe) let pointer = clinux_waker_make()!

  /// The `errno` value with which opening its descriptors failed; 0 if it succeeded.
  let failure: Int32

  init() { failure = clinux_waker_open(pointer) }

  deinit { clinux_waker_free(pointer) }

  /// A descriptor that is readable once it was woken; -1 when there is none.
  var descriptor: Int32 { clinux_waker_read_end(pointer) }

  var isIntact: Bool { clinux_waker_is_intact(pointer) }

  /// Whether a descriptor of the listening thread was found to be lost.
  var isLost: Bool { clinux_waker_is_lost(pointer) }

  func wake() { clinux_waker_wake(pointer) }
  func drain() { clinux_waker_drain(pointer) }
  func listen() { clinux_waker_listen(pointer) }
  /// Makes the listening thread check whether its descriptors are its own.
  func reportLoss() { clinux_waker_lost(pointer) }
  /// Clears `isLost`, since the loss is being handled.
  func forgetLoss() { clinux_waker_found(pointer) }

  /// Opens new descriptors in place of the lost ones. Returns 0, or an `errno` value.
  func reopen() -> Int32 { clinux_waker_open(pointer) }
}
