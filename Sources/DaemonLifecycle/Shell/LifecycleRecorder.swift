// SPDX-License-Identifier: Apache-2.0
/// Sees what goes in and out of a core: how the mock keeps its record.
///
/// Called under no lock of the core's, on whatever thread it happens; `didFinish` and `willDeliver` in
/// the order of the facts.
package protocol LifecycleRecorder: AnyObject, Sendable {
  func didAdd(_ observer: any LifecycleObserver)
  func didObserve(_ observer: String)
  func didRemove(_ observerOrOwner: AnyObject)
  func didPost(_ notification: any LifecycleNotification)
  func didHold()
  func didTerminate()
  func willDeliver(_ notification: any LifecycleNotification)
  func didFinish(_ report: LifecycleReport)
}
