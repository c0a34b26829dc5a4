// SPDX-License-Identifier: Apache-2.0
import CLinux

/// What can be asked of systemd and logind, or followed there. All from org.freedesktop.systemd1(5) and
/// org.freedesktop.login1(5).
///
/// "Own" is the unit that this process belongs to; reading needs no privileges.
package enum BusMatter: Sendable {
  // Questions: asked on each connection, and of each new process of the service, until the answer settles them.

  /// `TimeoutStopSec=` of the own unit, in `BusAnswer.duration`. Nothing in the environment says so.
  case stopTimeout
  /// For how long a delay lock can hold the machine back, in `BusAnswer.duration`.
  case delayLimit
  /// A delay lock, which holds the operation back until it is closed, for the limit at most; in `BusAnswer.descriptor`.
  /// Without root and polkit the answer is an error with `isAccessDenied`.
  case delayLock(Operation)

  // Asked by `BusSession.ask` alone, once each time.

  /// What systemd is about to do with the own unit: the type of the job in `BusAnswer.text`, `nil` where there is none.
  /// After SIGTERM it tells a restart from a stop.
  case unitJob

  // Followed: what is so now, then each change, without repeats, whatever restarts meanwhile.

  /// The machine's sleep, in `BusAnswer.isOn`. One that began before this, or while the bus was away, is made up for. A
  /// sleep that does not come about ends as one that does.
  case sleep
  /// The machine's shutdown, in `BusAnswer.isOn`, and in `BusAnswer.text` its kind, where systemd says so (since 255).
  /// SIGTERM follows. `systemctl start poweroff.target` is not announced.
  case shutdown
  /// A unit's state, by systemd's word for it, in `BusAnswer.text`. A unit that systemd does not know is an error with
  /// `isUnknownUnit`, unless it was there before, as a transient unit that is gone: that one is inactive.
  case activeState(UnitName)
  /// What the user of a user service is doing at the machine, in `BusAnswer.userSession`. logind knows no user for a
  /// system service: that is an error, once for each connection.
  case userSession

  /// What a delay lock holds back; the words are logind's.
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

/// What came of it; which of these it has is said in `BusMatter`.
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

  /// A time span of systemd's; `nil` is its infinity.
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

/// What the user of a user service is doing at the machine.
package enum UserSessionState: Sendable {
  /// At the machine: the session shown is active and not locked.
  case active
  /// Another session is in front.
  case inactive
  /// The screen is locked.
  case locked
  /// Logged in without a graphical or text session of their own, as a user who lingers.
  case none
}
