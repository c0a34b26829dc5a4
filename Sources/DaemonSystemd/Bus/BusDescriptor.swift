// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// A file descriptor that was received over the bus: close-on-exec, closed with the last reference.
package final class BusDescriptor: Sendable {
  /// The number; -1 once it was closed.
  let number: Mutex<Int32>

  package init(_ descriptor: consuming OwnedDescriptor) { number = Mutex(descriptor.release()) }

  deinit { close() }

  /// Closes the descriptor. Further calls have no effect. It may be called from any thread.
  package func close() {
    number.withLock { number in
      if number >= 0 { _ = CLinux.close(number) }
      number = -1
    }
  }
}
