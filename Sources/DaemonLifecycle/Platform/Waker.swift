// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Wakes the listening thread: from any thread, and from a signal handler.
///
/// Its descriptors may be closed by other code of the process, and their numbers be given to others. It writes to no
/// number before it has seen that its own descriptor is behind it; where it is not, the listening thread is got out of
/// its wait by a signal and finds `isLost` set.
final class Waker: Sendable {
  /// Freed by nobody but the deinit; what is behind it are atomics.
  nonisolated(unsafe) let pointer = clinux_waker_make()!

  /// Why it has no descriptors; 0: it has.
  let failure: Int32

  init() { failure = clinux_waker_open(pointer) }

  deinit { clinux_waker_free(pointer) }

  /// Readable once it was woken; -1: there is none.
  var descriptor: Int32 { clinux_waker_read_end(pointer) }

  var isIntact: Bool { clinux_waker_is_intact(pointer) }

  /// A descriptor of the listening thread was found not to be its own any more.
  var isLost: Bool { clinux_waker_is_lost(pointer) }

  func wake() { clinux_waker_wake(pointer) }
  func drain() { clinux_waker_drain(pointer) }
  func listen() { clinux_waker_listen(pointer) }
  /// Tells the listening thread, wherever it waits, to look whether its descriptors are its own.
  func reportLoss() { clinux_waker_lost(pointer) }
  /// The loss is being seen to.
  func forgetLoss() { clinux_waker_found(pointer) }

  /// New descriptors in the place of those that it had. 0, or an errno value.
  func reopen() -> Int32 { clinux_waker_open(pointer) }
}
