// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// Keeps an operator's pause over a restart, an upgrade and a crash: in the store of systemd (`FileDescriptorStoreMax=`),
/// which forgets it as the unit stops.
actor KeptPause: BackgroundObserver, ForegroundObserver {
  private static let name = "paused"
  private weak var lifecycle: (any LifecycleObservable)?
  private let kept: Preservation
  private var isKept: Bool

  /// Where a pause is kept, the daemon launches into the background.
  init(_ lifecycle: any LifecycleObservable) throws {
    self.lifecycle = lifecycle
    kept = try lifecycle.preservation()
    isKept = try kept.preservedBytes(named: Self.name) != nil
    if isKept { lifecycle.pause(for: .operator) }
    lifecycle.addObserver(self)
  }

  func didEnterBackground(_ notification: DidEnterBackground) throws {
    guard lifecycle?.backgroundReasons.contains(.operator) == true else { return }
    try kept.preserve([1], named: Self.name)
    isKept = true
  }

  func willEnterForeground(_ notification: WillEnterForeground) throws {
    if isKept { try kept.forget(named: Self.name) }
    isKept = false
  }
}
