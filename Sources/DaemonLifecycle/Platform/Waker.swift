// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A waker of the listening thread, which may be used on any thread and in a signal handler.
final class Waker: Sendable {
  /// Freed by the deinit only; it points to atomics.
  nonisolated(unsafe) let pointer = clinux_waker_make()!

  deinit { clinux_waker_free(pointer) }

  /// Opens its descriptors, unless they are open. Returns 0, or an `errno` value.
  func open() -> Int32 { clinux_waker_open(pointer) }

  /// Closes its descriptors, since nobody listens; it may be opened again.
  func close() { clinux_waker_close(pointer) }

  /// Leaves its descriptors to other code, which has closed one of them; it may be opened again.
  func forget() { clinux_waker_forget(pointer) }

  /// A descriptor that is readable after `wake`; -1 when there is none.
  var descriptor: Int32 { clinux_waker_read_end(pointer) }

  func wake() { clinux_waker_wake(pointer) }

  /// Takes the wake-ups. Returns false where the descriptor is lost.
  func drain() -> Bool { clinux_waker_drain(pointer) }
}
