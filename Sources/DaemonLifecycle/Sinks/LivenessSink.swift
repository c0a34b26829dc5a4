import CLinux
import Synchronization

/// Touches the liveness file when the daemon is well.
final class LivenessSink: LifecycleSink {
  private let path: String
  private let complain: @Sendable (String) -> Void
  /// What went wrong last, so that it is said once.
  private let lastError = Mutex<Int32>(0)

  /// - Parameter complain: Gets a sentence when the file can't be touched.
  init(_ file: LivenessFile, complain: @escaping @Sendable (String) -> Void) {
    path = file.path
    self.complain = complain
  }

  var isServiceManager: Bool { false }

  func hear(_ fact: LifecycleFact) {
    switch fact {
    case .launched, .healthy: touch()
    default: break
    }
  }

  private func touch() {
    let error = Self.touch(path)
    let isNew = lastError.withLock { last in
      defer { last = error }
      return error != 0 && error != last
    }
    if isNew {
      complain(
        "The liveness file \(path) could not be touched: \(String(cString: strerror(error))) (errno \(error));"
          + " probes will find the daemon dead.")
    }
  }

  /// `errno`, or 0. Never waits for who might be at the other end, and follows no link: whoever can make one there
  /// could have another file touched.
  private static func touch(_ path: String) -> Int32 {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { return EINVAL }
    let file = clinux_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o644)
    guard file >= 0 else { return clinux_errno() }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { return clinux_errno() }
    guard Int32(truncatingIfNeeded: status.st_mode) & S_IFMT == S_IFREG else { return ENXIO }
    return futimens(file, nil) == 0 ? 0 : clinux_errno()
  }
}
