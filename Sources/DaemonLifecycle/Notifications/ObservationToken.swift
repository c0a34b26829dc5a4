// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Ends what it stands for, an observation or a hold, when it goes away.
///
/// Keep it as long as the observation shall last; store several in an array. Safe to use and to
/// drop on any thread, in a hook too.
public final class ObservationToken: Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  package init(_ end: @escaping @Sendable () -> Void) { self.end = Mutex(end) }

  deinit { cancel() }

  /// Ends it now; idempotent. A hook that runs already is not interrupted.
  public func cancel() {
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }
}
