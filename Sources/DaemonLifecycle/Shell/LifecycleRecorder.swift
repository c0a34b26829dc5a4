// SPDX-License-Identifier: Apache-2.0
/// A recorder of the inputs and outputs of a core, for the mock.
///
/// It is called without a lock of the core, on any thread; `didFinish` and `willDeliver` in the order of the facts.
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
