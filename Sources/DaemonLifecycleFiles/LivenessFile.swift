// SPDX-License-Identifier: Apache-2.0
import CLinux
public import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// The liveness file, whose time is updated as long as the daemon is healthy.
final class LivenessFile: LifecyclePart {
  private let path: String
  private let warn: @Sendable (String) -> Void
  /// The last error, so that it is logged once.
  private let lastError = Atomic<Int32>(0)

  init(_ path: String, warn: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.warn = warn
  }

  /// Touches the file when the launch has ended, and whenever a check has found the daemon healthy.
  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .launched, .healthy: touch()
    default: break
    }
    return nil
  }

  private func touch() {
    let error = Self.touch(path)
    if lastError.exchange(error, ordering: .relaxed) != error, error != 0 {
      warn(
        "The liveness file \(path) could not be touched: \(String(cString: strerror(error))) (errno \(error));"
          + " liveness probes will fail.")
    }
  }

  /// Updates the file's time; returns `errno`, or 0. It never blocks on a FIFO, and does not follow links, with which
  /// another user could have another file touched. An existing file needs no descriptor, so a daemon without
  /// descriptors does not look dead.
  private static func touch(_ path: String) -> Int32 {
    guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else { return EINVAL }
    var status = stat()
    if fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) != 0 {
      return clinux_errno() == ENOENT ? make(path) : clinux_errno()
    }
    switch Int32(truncatingIfNeeded: status.st_mode) & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: return EISDIR
    case S_IFLNK: return ELOOP
    default: return ENXIO
    }
    return utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : clinux_errno()
  }

  /// Creates the file, whose time is then right. With O_EXCL no link is followed, and no existing file is opened.
  private static func make(_ path: String) -> Int32 {
    let file = clinux_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0o644)
    guard file >= 0 else { return clinux_errno() }
    CLinux.close(file)
    return 0
  }
}

extension LifecycleInterface {
  /// A file whose modification time is updated as long as the daemon is healthy.
  ///
  /// It is for a container's liveness probe:
  ///
  /// ```swift
  /// configuration.interfaces.append(.livenessFile("/run/mydaemon/alive"))
  /// configuration.exitIfProbed(by: CommandLine.arguments)
  /// // livenessProbe: { exec: { command: [/mydaemon, --probe, alive] } }
  /// ```
  ///
  /// Swift's global executor, the main actor (if anything runs on it) and the observers' `checkHealth` hooks are checked
  /// every three quarters of 30 s, or of systemd's `WatchdogSec=` if that is less; after a failure, again in half of that
  /// time. While all are healthy, the file's time is updated twice as often. The file is created after the launch, and
  /// updated in the background too. The termination updates it without a check, since the stop has its own limit.
  ///
  /// It is not removed at the end: only its age counts. The probe should allow for 60 s or more, since a failed probe
  /// ends the container.
  ///
  /// - Parameter path: Its absolute path, on a local file system; not that of the ``readinessFile(_:)``.
  public static func livenessFile(_ path: String) -> Self {
    livenessFile(path, within: .seconds(30))
  }

  /// - Parameter period: The time within which one check must succeed; shorter in tests.
  package static func livenessFile(_ path: String, within period: Duration) -> Self {
    Self("liveness file", of: path, .local) { wiring in
      wiring.parts.append(LivenessFile(path, warn: wiring.warn))
      wiring.checkHealth(within: period, "The period of \(path)")
      if wiring.interfaces.contains(.readinessFile(path)) {
        wiring.note(
          "\(path) is the readiness file and the liveness file, so a daemon that is paused would look ready:"
            + " give each its own.")
      }
    }
  }
}
