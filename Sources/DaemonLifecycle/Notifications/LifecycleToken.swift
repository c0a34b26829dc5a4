// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A token that ends an observation, or a hold of deliveries, when it is cancelled or released.
///
/// Keep it as long as the observation should last; several can be stored in an array. It may be used and released on
/// any thread, also in a hook.
public final class LifecycleToken: Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>
  /// Called where it is released, and was not cancelled.
  private let dropped: (@Sendable () -> Void)?

  package init(dropped: (@Sendable () -> Void)? = nil, _ end: @escaping @Sendable () -> Void) {
    self.dropped = dropped
    self.end = Mutex(end)
  }

  deinit {
    if let dropped, end.withLock({ $0 != nil }) { dropped() }
    cancel()
  }

  /// Ends the observation or hold at once. Further calls have no effect. A hook that is running is not interrupted.
  public func cancel() {
    let end = end.withLock { $0.take() }
    end?()
  }
}
