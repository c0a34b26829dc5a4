// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The terminal in which the daemon was started.
///
/// When it is closed, the kernel may send SIGHUP to the session's shell alone, which then sends it to its jobs. A SIGHUP
/// that comes later from elsewhere is a request, also without a terminal, as after `disown`. Source: tty_ioctl(4), setsid(2).
struct OwnTerminal {
  private let session = getsid(0)

  /// `nil` where there is none.
  init?() { if Self.error != 0 { return nil } }

  /// Whether a SIGHUP means that: a process of the session sent it, and the terminal is gone.
  func wasClosed(asToldBy record: clinux_signal_record) -> Bool {
    record.origin == CLINUX_SENDER_PROCESS
      && (record.pid == session || getsid(record.pid) == session)
      && [ENXIO, EIO].contains(Self.error)
  }

  /// 0, or why this process has no terminal.
  private static var error: Int32 {
    let terminal = clinux_open_at(AT_FDCWD, "/dev/tty", O_RDONLY, 0)
    if terminal < 0 { return clinux_errno() }
    close(terminal)
    return 0
  }
}
