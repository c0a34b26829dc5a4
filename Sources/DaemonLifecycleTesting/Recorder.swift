// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Synchronization

final class Recorder: LifecycleRecorder {
  struct Record {
    var calls: [MockLifecycleSubject.Call] = []
    var delivered: [any LifecycleNotification] = []
    var reports: [LifecycleReport] = []
    var exitCode: Int32?
  }

  private let record = Mutex(Record())

  func change(_ body: (inout Record) -> Void) { record.withLock { body(&$0) } }

  var current: Record { record.withLock { $0 } }

  func didAdd(_ observer: any LifecycleObserver) {
    change { $0.calls.append(.addObserver(type(of: observer))) }
  }
  func didObserve(_ observer: String) { change { $0.calls.append(.observe(observer)) } }
  func didRemove(_ observerOrOwner: AnyObject) {
    change { $0.calls.append(.removeObserver(type(of: observerOrOwner))) }
  }
  func didPost(_ notification: any LifecycleNotification) {
    change { $0.calls.append(.post(notification)) }
  }
  func didHold() { change { $0.calls.append(.holdDeliveries) } }
  func didTerminate() { change { $0.calls.append(.terminate) } }
  func willDeliver(_ notification: any LifecycleNotification) {
    change { $0.delivered.append(notification) }
  }
  func didFinish(_ report: LifecycleReport) { change { $0.reports.append(report) } }
}
