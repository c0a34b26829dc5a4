// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

final class LivenessSink: LifecycleSink {
  private let path: String
  private let warn: @Sendable (String) -> Void
  /// The last error, so that it is logged once.
  private let lastError = Mutex<Int32>(0)

  init(_ path: String, warn: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.warn = warn
  }

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .launched, .healthy: touch()
    default: break
    }
    return nil
  }

  private func touch() {
    let error = Self.touch(path)
    let isNew = lastError.withLock { last in
      defer { last = error }
      return error != 0 && error != last
    }
    if isNew {
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
    close(file)
    return 0
  }
}
