import Synchronization

/// Keeps something being watched; ends with `cancel()` or with the last reference to it.
package final class BusWatch: Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  init(_ end: @escaping @Sendable () -> Void) { self.end = Mutex(end) }

  deinit { cancel() }

  /// Ends it; does nothing the second time. A callback that is running may still end.
  package func cancel() {
    let end = end.withLock { $0.take() }
    end?()
  }
}
