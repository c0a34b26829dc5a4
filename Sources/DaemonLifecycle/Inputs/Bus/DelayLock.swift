// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A delay lock of logind: taken in advance, released when the work before a sleep or a shutdown is done, and then
/// taken again.
///
/// It is requested until logind grants or denies it, and again when logind has been restarted. While there is none,
/// `STATUS=` and the log report that.
final class DelayLock {
  enum Operation: String { case sleep, shutdown }

  let operation: Operation
  private let inbox: BusInbox
  private var lock: BusDescriptor?
  /// Whether the sleep or shutdown has been announced: a lock that is granted only now would delay it for nothing.
  private var isAnnounced = false
  /// Whether the save that the announcement has requested has begun.
  private var isSaving = false
  private var isReportedMissing = false

  init(_ operation: Operation, _ inbox: BusInbox) {
    (self.operation, self.inbox) = (operation, inbox)
  }

  static let member = "Inhibit"

  /// The call that requests it; `nil` while it is held, or too late.
  var request: BusCall? {
    if lock != nil || isAnnounced { return nil }
    return BusCall(
      Self.member, of: BusService.logind.path, BusService.logind.interface("Manager"), .logind,
      [operation.rawValue, Journal.programName, "Saves its state", "delay"])
  }

  var isHeld: Bool { lock != nil }

  func setAnnounced(_ isAnnounced: Bool) { (self.isAnnounced, isSaving) = (isAnnounced, false) }

  /// Releases it once the work before the operation has ended; a lock that was taken after it is for the next one.
  func workEnded() { if isAnnounced { lock = nil } }

  func saveBegan() { isSaving = isAnnounced }

  func saveEnded() { if isSaving { workEnded() } }

  /// Takes the reply to the request. Returns whether it is final: a lock, or a denial for this user.
  func receive(_ reply: BusRequest.Reply) -> Bool {
    switch reply {
    case .success(let values):
      guard case .descriptor(let granted)? = values.only else {
        reportMissing(.malformed(Self.member))
        return true
      }
      // One that is not needed any more is released with its last reference.
      if request != nil { keep(granted) }
      return true
    case .failure(let error):
      reportMissing(error)
      return error.kind == .accessDenied
    }
  }

  private func keep(_ granted: BusDescriptor) {
    lock = granted
    inbox.settle(subject)
    if isReportedMissing { inbox.put(.statusNote(statusNote, nil)) }
    isReportedMissing = false
  }

  private func reportMissing(_ error: BusError) {
    // That a lock requires privileges is in STATUS= and in the guide.
    if error.kind != .accessDenied { inbox.warn(error, without: subject) }
    if !isReportedMissing { inbox.put(.statusNote(statusNote, "no delay lock: \(consequence)")) }
    isReportedMissing = true
  }

  private var subject: String { "a delay lock for the \(operation)" }

  private var statusNote: StatusNote { operation == .sleep ? .delayLock : .shutdownLock }

  private var consequence: String {
    operation == .sleep
      ? "a suspend does not wait for the hooks" : "a shutdown does not wait for the save"
  }
}
