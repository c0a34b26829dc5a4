// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import TestSupport

// Hooks that observers get in another module than their own: see HookAdoptionTests.

extension ForeignClass: SaveObserver {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignActor: SaveObserver {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignBox: SaveObserver where Element: Equatable {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignStranger: NotingObserver, TerminationObserver {
  public func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
extension ForeignObserver: EveryHookObserver {
  public func receive(_ notification: some LifecycleNotification) { received.add(notification) }
}
