// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import TestSupport

// Hooks that observers get in another module than their own: see HookAdoptionTests.

extension ForeignClass: StateObserver {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignActor: StateObserver {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignBox: StateObserver where Element: Equatable {
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
}
extension ForeignStranger: NotingObserver, TerminationObserver {
  public func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
extension ForeignObserver:
  LaunchObserver, ForegroundObserver, BackgroundObserver, StateObserver, ReloadObserver,
  SuspendObserver, ResumeObserver, PressureObserver, HealthObserver, TerminationObserver
{
  public func didFinishLaunching(_ notification: DidFinishLaunching) { received.add(notification) }
  public func willEnterForeground(_ notification: WillEnterForeground) {
    received.add(notification)
  }
  public func didEnterBackground(_ notification: DidEnterBackground) { received.add(notification) }
  public func shouldSaveState(_ notification: ShouldSaveState) { received.add(notification) }
  public func shouldReload(_ notification: ShouldReload) { received.add(notification) }
  public func willSuspend(_ notification: WillSuspend) { received.add(notification) }
  public func didResume(_ notification: DidResume) { received.add(notification) }
  public func didReceivePressure(_ notification: DidReceivePressure) { received.add(notification) }
  public func checkHealth(_ notification: CheckHealth) { received.add(notification) }
  public func willTerminate(_ notification: WillTerminate) { received.add(notification) }
}
