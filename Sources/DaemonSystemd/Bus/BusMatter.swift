// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A query to systemd or logind, or a state to follow there. Sources: org.freedesktop.systemd1(5) and
/// org.freedesktop.login1(5).
///
/// "Own" is the unit that this process belongs to; reading needs no privileges.
package enum BusMatter: Sendable {
  // Queries: sent on each connection, and to each new process of the service, until a reply settles them.

  /// `TimeoutStopSec=` of the own unit, in `BusAnswer.duration`. The environment does not contain it.
  case stopTimeout
  /// How long a delay lock can delay the machine, in `BusAnswer.duration`.
  case delayLimit
  /// A delay lock, in `BusAnswer.descriptor`, which delays the operation until it is closed, but no longer than the
  /// limit. Without root or a polkit rule the reply is an error with `isAccessDenied`.
  case delayLock(Operation)

  // Sent only by `BusSession.ask`, once for each call.

  /// The job of the own unit: its type in `BusAnswer.text`, `nil` where there is none. After SIGTERM it distinguishes a
  /// restart from a stop.
  case unitJob

  // Followed: the current state, then each change, without repeats, even when systemd or logind restarts.

  /// The machine's sleep, in `BusAnswer.isOn`. A sleep that began earlier, or while the bus was unavailable, is
  /// reported later. A sleep that is cancelled ends as one that took place.
  case sleep
  /// The machine's shutdown, in `BusAnswer.isOn`, and its kind in `BusAnswer.text`, where systemd reports it (since
  /// 255). SIGTERM follows. `systemctl start poweroff.target` is not announced.
  case shutdown
  /// A unit's state, in systemd's terms, in `BusAnswer.text`. A unit that systemd does not know is an error with
  /// `isUnknownUnit`, unless it existed before, as a transient unit: that one is inactive.
  case activeState(UnitName)
  /// The state of the user's session, for a user service, in `BusAnswer.userSession`. logind knows no user for a system
  /// service, which is an error, once for each connection.
  case userSession

  /// An operation that a delay lock delays, by logind's names.
  package enum Operation: String, Sendable {
    /// Power-off, reboot, halt and kexec.
    case shutdown
    /// Suspend and hibernation.
    case sleep
  }

  var code: clinux_bus_matter {
    switch self {
    case .stopTimeout: CLINUX_BUS_STOP_TIMEOUT
    case .delayLimit: CLINUX_BUS_DELAY_MAX
    case .delayLock: CLINUX_BUS_LOCK
    case .unitJob: CLINUX_BUS_JOB
    case .sleep: CLINUX_BUS_SLEEP
    case .shutdown: CLINUX_BUS_SHUTDOWN
    case .activeState: CLINUX_BUS_UNIT
    case .userSession: CLINUX_BUS_SESSION
    }
  }

  var argument: String? {
    switch self {
    case .delayLock(let operation): operation.rawValue
    case .activeState(let unit): unit.objectPath
    default: nil
    }
  }
}

/// The reply to a query; `BusMatter` names the property that it has.
package struct BusAnswer: Sendable {
  let number: UInt64
  package let text: String?
  package let descriptor: BusDescriptor?

  init(_ word: clinux_bus_word) {
    number = word.number
    text = word.text.map { String(cString: $0) }
    descriptor = word.descriptor < 0 ? nil : BusDescriptor(OwnedDescriptor(owning: word.descriptor))
  }

  package var isOn: Bool { number != 0 }

  /// A time span; `nil` for systemd's infinity.
  package var duration: Duration? {
    guard number != .max else { return nil }
    return .seconds(Int64(number / 1_000_000)) + .microseconds(Int64(number % 1_000_000))
  }

  package var userSession: UserSessionState {
    switch clinux_bus_session(UInt32(truncatingIfNeeded: number)) {
    case CLINUX_SESSION_ACTIVE: .active
    case CLINUX_SESSION_INACTIVE: .inactive
    case CLINUX_SESSION_LOCKED: .locked
    default: .none
    }
  }
}

/// The state of the session of a user service's user.
package enum UserSessionState: Sendable {
  /// The user's session is active and not locked.
  case active
  /// Another session is active.
  case inactive
  /// The screen is locked.
  case locked
  /// The user has no graphical or text session, as a user who lingers.
  case none
}
