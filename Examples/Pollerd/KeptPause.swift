// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// Keeps an operator's pause over a restart, an upgrade and a crash: in the store of systemd (`FileDescriptorStoreMax=`),
/// which forgets it as the unit stops.
final class KeptPause: BackgroundObserver, ForegroundObserver {
  private static let name = "paused"
  private let kept: Preservation

  /// Where a pause is kept, the daemon launches into the background.
  init(_ lifecycle: any LifecycleObservable) throws {
    kept = try lifecycle.preservation()
    if try kept.preservedBytes(named: Self.name) != nil { lifecycle.pause() }
    lifecycle.addObserver(self)
  }

  func didEnterBackground(_ notification: DidEnterBackground) throws {
    // The operator's, and not that of a stop.
    if notification.cause.signal == .sigusr1 { try kept.preserve([1], named: Self.name) }
  }

  func willEnterForeground(_ notification: WillEnterForeground) throws {
    try kept.forget(named: Self.name)
  }
}
