// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A signal that a process can catch: any except SIGKILL, SIGSTOP and those reserved by the C library.
///
/// ```swift
/// print(UnixSignal.sigterm)       // SIGTERM
/// print(UnixSignal.realTime(3)!)  // SIGRTMIN+3
/// ```
///
/// Numbers differ between architectures; the constants are those of the C library. Source: signal(7).
public struct UnixSignal: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The signal's number.
  public let rawValue: Int32

  /// Makes a signal from its number; `nil` for SIGKILL, SIGSTOP, the signals between the standard and the real-time
  /// ones, and numbers that are no signals.
  public init?(rawValue: Int32) {
    let isStandard = Self.standardNames.contains { $0.number == rawValue }
    let isRealTime = (clinux_sigrtmin()...clinux_sigrtmax()).contains(rawValue)
    guard isStandard || isRealTime else { return nil }
    self.rawValue = rawValue
  }

  /// Makes a signal from a number that is known to be valid.
  private init(known: Int32) { rawValue = known }

  /// The terminal was closed; for daemons, and for systemd's `notify-reload`, a request to reload.
  public static let sighup = UnixSignal(known: SIGHUP)
  /// Ctrl-C in a terminal.
  public static let sigint = UnixSignal(known: SIGINT)
  /// Ctrl-\\ in a terminal; unhandled, the process dumps core.
  public static let sigquit = UnixSignal(known: SIGQUIT)
  /// User-defined; here a request to pause.
  public static let sigusr1 = UnixSignal(known: SIGUSR1)
  /// User-defined; here a request to resume.
  public static let sigusr2 = UnixSignal(known: SIGUSR2)
  /// A timer of alarm(2) has run out.
  public static let sigalrm = UnixSignal(known: SIGALRM)
  /// A request to terminate, as sent by systemd, container runtimes and kill(1).
  public static let sigterm = UnixSignal(known: SIGTERM)
  /// Continue after SIGSTOP.
  static let sigcont = UnixSignal(known: SIGCONT)

  /// Returns the real-time signal `SIGRTMIN+offset`; `nil` when there are not that many (30 on Linux with glibc).
  public static func realTime(_ offset: Int) -> UnixSignal? {
    let count = Int(clinux_sigrtmax() - clinux_sigrtmin())
    guard (0...count).contains(offset) else { return nil }
    return UnixSignal(known: clinux_sigrtmin() + Int32(offset))
  }

  /// Whether the signal reports a fault of the current instruction, which is repeated for ever when a handler returns.
  var isFault: Bool { [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS].contains(rawValue) }

  private static let standardNames: [(number: Int32, name: String)] = [
    (SIGHUP, "HUP"), (SIGINT, "INT"), (SIGQUIT, "QUIT"), (SIGILL, "ILL"), (SIGTRAP, "TRAP"),
    (SIGABRT, "ABRT"), (SIGBUS, "BUS"), (SIGFPE, "FPE"), (SIGUSR1, "USR1"), (SIGSEGV, "SEGV"),
    (SIGUSR2, "USR2"), (SIGPIPE, "PIPE"), (SIGALRM, "ALRM"), (SIGTERM, "TERM"),
    (SIGSTKFLT, "STKFLT"), (SIGCHLD, "CHLD"), (SIGCONT, "CONT"), (SIGTSTP, "TSTP"),
    (SIGTTIN, "TTIN"), (SIGTTOU, "TTOU"), (SIGURG, "URG"), (SIGXCPU, "XCPU"), (SIGXFSZ, "XFSZ"),
    (SIGVTALRM, "VTALRM"), (SIGPROF, "PROF"), (SIGWINCH, "WINCH"), (SIGIO, "IO"), (SIGPWR, "PWR"),
    (SIGSYS, "SYS"),
  ]

  /// The signal's name: `SIGTERM`, or `SIGRTMIN+3` for a real-time signal.
  public var description: String {
    if let known = Self.standardNames.first(where: { $0.number == rawValue }) {
      return "SIG" + known.name
    }
    let offset = rawValue - clinux_sigrtmin()
    return offset == 0 ? "SIGRTMIN" : "SIGRTMIN+\(offset)"
  }
}
