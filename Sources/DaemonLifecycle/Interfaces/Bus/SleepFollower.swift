// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The machine's sleep, and the delay lock with which logind waits for the hooks; that requires root or polkit.
///
/// The lock is requested in advance, released when the hooks have ended, and requested again after the sleep, until
/// logind grants or denies it. While logind is away, `STATUS=` and the log report that; a denial is logged once.
/// Source: org.freedesktop.login1(5).
final class SleepFollower {
  private let inbox: BusInbox
  private var lock: BusDescriptor?
  /// Whether a sleep was announced and is not over. A lock that is granted meanwhile would delay it for nothing.
  private var isAsleep = false
  /// The time for which logind waits.
  private var limit = Duration.seconds(5)
  private enum Missing { case away, denied }
  /// The reason that was last reported for a missing lock.
  private var reported: Missing?

  init(_ inbox: BusInbox) { self.inbox = inbox }

  private static let manager = BusService.logind.interface("Manager")
  private static let inhibit = BusCall.inhibit(
    "sleep", because: "Saves its state", mode: "delay")
  private static let readLimit = property("InhibitDelayMaxUSec")
  private static let readState = property("PreparingForSleep")
  private static let subject = "the machine's sleep"
  private static let lockSubject = "a delay lock for the sleep"

  private static func property(_ name: String) -> BusCall {
    .get(name, of: BusService.logind.path, "Manager", .logind)
  }

  /// The lock is taken before the state is read: a sleep that begins between the two waits. A sleep that began earlier,
  /// or while the bus was unavailable, is reported later.
  var request: BusRequest {
    BusRequest(
      .logind,
      matches: [
        BusMatch("PrepareForSleep", of: BusService.logind.path, Self.manager, .logind)
      ],
      query: self.query(), receive: { [self] in receive($0) })
  }

  private func query() -> BusCall {
    lock == nil && !isAsleep ? Self.inhibit : Self.readLimit
  }

  private func receive(_ event: BusRequest.Event) -> BusRequest.Next {
    switch event {
    case .reply(let values, to: Self.inhibit):
      if case .descriptor(let granted)? = values.only {
        keep(granted)
      } else {
        reportMissing(.malformed(Self.inhibit.member))
      }
      return .call(Self.readLimit)
    case .failure(let error, of: Self.inhibit):
      reportMissing(error)
      return .call(Self.readLimit)
    case .reply(let values, to: Self.readLimit):
      if case .variant(.uint64(let time))? = values.only { limit = duration(microseconds: time) }
      return .call(Self.readState)
    case .failure(_, of: Self.readLimit): return .call(Self.readState)
    case .reply(let values, _):
      guard case .variant(.bool(let value))? = values.only else { return .malformed }
      inbox.settle(Self.subject)
      let hasWoken = isAsleep && !value
      become(value)
      // This query did not request the lock.
      if hasWoken { return .again }
    case .failure(let error, _): inbox.warn(error, without: Self.subject)
    case .signal(let values):
      guard case .bool(let value)? = values.first else { return .malformed }
      become(value)
      // When it is over, the next lock is taken.
      return value ? .done : .again
    }
    return reported == .away && !isAsleep ? .again : .done
  }

  private func become(_ value: Bool) {
    if value == isAsleep { return }
    isAsleep = value
    if value {
      // A tenth is kept for the way back to logind.
      if lock != nil { inbox.put(.systemd(.sleepDelay(limit - limit / 10))) }
      inbox.put(.sleep, "the machine is about to sleep")
    } else {
      inbox.put(.wakeUp, "the machine has woken up")
    }
  }

  /// Releases the lock once the work before the sleep has ended; a lock that was taken after the sleep is for the next one.
  func workEnded() { if isAsleep { lock = nil } }

  /// Releases the lock for good. Other code may hold this object for longer.
  func close() { lock = nil }

  private func keep(_ granted: BusDescriptor) {
    // A lock that is no longer needed is released with its last reference.
    if isAsleep { return }
    lock = granted
    inbox.settle(Self.lockSubject)
    report(nil)
  }

  private func reportMissing(_ error: BusError) {
    let missing: Missing = error.kind == .accessDenied ? .denied : .away
    if missing == .away { inbox.warn(error, without: Self.lockSubject) }
    report(missing)
  }

  /// A denial is final, so it gets no note: that would stay for ever on a server that never sleeps.
  private func report(_ missing: Missing?) {
    if missing == reported { return }
    let lack = "the machine's sleep does not wait for the hooks"
    if missing == .away || reported == .away {
      let note = missing == .away ? "no delay lock: \(lack)" : nil
      inbox.put(.fact(.statusNote(.delayLock, note)))
    }
    if missing == .denied {
      inbox.put(.fact(.info("No delay lock: \(lack). Allow it in polkit, or remove `.sleep`.")))
    }
    reported = missing
  }
}
