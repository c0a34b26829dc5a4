// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Synchronization

final class Recorder: LifecycleRecorder {
  struct Record {
    var calls: [String] = []
    var delivered: [any LifecycleNotification] = []
    var reports: [LifecycleReport] = []
    var exitStatus: Int32?
  }

  private let record = Mutex(Record())

  @inline(never) func change(_ body: (inout Record) -> Void) { record.withLock { body(&$0) } }

  @inline(never) var current: Record { record.withLock { $0 } }

  private func add(_ call: String) { change { $0.calls.append(call) } }

  func didAdd(_ observer: any LifecycleObserver) { add("addObserver(\(type(of: observer)))") }
  func didObserve(_ observer: String) { add("observe(\(observer))") }
  func didRemove(_ observerOrOwner: AnyObject) {
    add("removeObserver(\(type(of: observerOrOwner)))")
  }
  func didPost(_ notification: any LifecycleNotification) { add("post(\(notification))") }
  func didHold() { add("holdDeliveries()") }
  func didTerminate() { add("terminate()") }
  func willDeliver(_ notification: any LifecycleNotification) {
    change { $0.delivered.append(notification) }
  }
  func didFinish(_ report: LifecycleReport) { change { $0.reports.append(report) } }
}
