// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A waker of the listening thread, which may be used on any thread and in a signal handler.
///
/// Other code of the process may close its descriptors, and their numbers may be reused. It uses a number only after it
/// has verified that its own descriptor is behind it.
final class Waker: Sendable {
  /// Freed by the deinit only; it points to atomics.
  nonisolated(unsafe) let pointer = clinux_waker_make()!

  deinit { clinux_waker_free(pointer) }

  /// Opens its descriptors, unless they are open. Returns 0, or an `errno` value.
  func open() -> Int32 { clinux_waker_open(pointer) }

  /// Closes its descriptors, since nobody listens; it may be opened again.
  func close() { clinux_waker_close(pointer) }

  /// Lends it the timer of the thread that listens, which it sets where the kernel has no memory for a byte, and the set that
  /// knows the timer by its file. Until it is closed.
  func lend(_ timer: Int32, _ files: KnownFiles) {
    clinux_waker_lend(pointer, timer, files.number)
  }
  func takeBackTimer() { clinux_waker_lend(pointer, -1, -1) }

  /// Whether it has set the timer.
  var isRinging: Bool { clinux_waker_is_ringing(pointer) }
  /// The same, and takes that back.
  func takeRing() -> Bool { clinux_waker_take_ring(pointer) }

  /// A descriptor that is readable once it was woken; -1 when there is none.
  var descriptor: Int32 { clinux_waker_read_end(pointer) }

  /// Wakes. Returns false when its descriptors are lost.
  func wake() -> Bool { clinux_waker_wake(pointer) }
  /// Takes the wake-ups. Returns false when its descriptors are lost.
  func drain() -> Bool { clinux_waker_drain(pointer) }
}
