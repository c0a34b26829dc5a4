// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A delay lock of logind: taken in advance, released when the work before a sleep or a shutdown is done, and then
/// taken again.
///
/// It is requested until logind grants or denies it, and again when logind has been restarted. While there is none,
/// `STATUS=` and the log report that.
final class DelayLock: Sendable {
  private struct State {
    var lock: BusDescriptor?
    /// Whether the sleep or shutdown has been announced: a lock that is granted only now would delay it for nothing.
    var isAnnounced = false
    /// logind has not granted it, and `STATUS=` says so.
    var isReportedMissing = false
  }

  /// Of logind, for the lock.
  private let question = BusQuestion()
  private let operation: BusMatter.Operation
  private let statusNote: StatusNote
  /// The consequence of having no lock, for `STATUS=`.
  private let consequence: String
  private let state = Mutex(State())

  init(_ operation: BusMatter.Operation, _ statusNote: StatusNote, consequence: String) {
    (self.operation, self.statusNote, self.consequence) = (operation, statusNote, consequence)
  }

  /// The name of the lock in the log.
  private var matter: String { "a delay lock for the \(operation)" }

  var isHeld: Bool { state.withLock { $0.lock != nil } }

  /// Takes the lock as soon as logind grants it. Replies arrive on the listening thread.
  func begin(on session: BusSession, _ inbox: BusInbox) {
    let item = session.follow(.delayLock(operation)) { [weak self] in
      self?.isWanted ?? false
    } _: { [weak self] answer in
      self?.take(answer, inbox) ?? true
    }
    question.begin(item, on: session)
  }

  /// Notes the announcement of the sleep or shutdown: from here on no lock is taken.
  func setAnnounced() { state.withLock { $0.isAnnounced = true } }

  func setOver() {
    state.withLock { $0.isAnnounced = false }
    question.ask()
  }

  func release() {
    let lock = state.withLock { $0.lock.take() }
    lock?.close()
  }

  private var isWanted: Bool { state.withLock { $0.lock == nil && !$0.isAnnounced } }

  /// Takes a reply. Returns whether it is final: a lock, or a denial for this user.
  private func take(_ answer: Result<BusAnswer, BusError>, _ inbox: BusInbox) -> Bool {
    switch answer {
    case .success(let answer):
      if let lock = answer.descriptor { keep(lock, inbox) }
      return true
    case .failure(let error):
      reportMissing(inbox)
      if error.isAccessDenied { return true }
      inbox.warn(error, without: matter)
      return false
    }
  }

  /// Keeps a lock. One that is not needed any more is released here, with its last reference.
  private func keep(_ lock: BusDescriptor, _ inbox: BusInbox) {
    let wasMissing = state.withLock { state in
      guard state.lock == nil, !state.isAnnounced else { return false }
      state.lock = lock
      defer { state.isReportedMissing = false }
      return state.isReportedMissing
    }
    if wasMissing { inbox.put(.statusNote(statusNote, nil)) }
    inbox.settle(matter)
  }

  private func reportMissing(_ inbox: BusInbox) {
    let isNew = state.withLock { state in
      defer { state.isReportedMissing = true }
      return !state.isReportedMissing
    }
    if isNew { inbox.put(.statusNote(statusNote, "no delay lock: \(consequence)")) }
  }
}
