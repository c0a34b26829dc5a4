import CLinux

/// Writes to standard error without ever waiting for a reader, or dying for want of one or of room in a file: a daemon
/// whose stderr is a full pipe must still end. What does not fit is dropped.
///
/// Any thread may call it; lines of up to `PIPE_BUF` bytes are not mixed with others.
package enum StandardError {
  /// Writes text of any origin as one line: ``VisibleText/line(_:)``. False when not all of it was taken.
  @discardableResult
  package static func writeLine(_ line: String) -> Bool { writeText(VisibleText.line(line)) }

  /// Writes text that is safe to show as it is, on one line or several. False when not all of it was taken.
  @discardableResult
  package static func writeText(_ text: String) -> Bool {
    var text = text + "\n"
    return text.withUTF8 { bytes in
      guard let base = bytes.baseAddress else { return true }
      return write(base, bytes.count) == bytes.count
    }
  }

  private static func write(_ base: UnsafePointer<UInt8>, _ count: Int) -> Int {
    // A socket (the journal) takes MSG_DONTWAIT.
    let flags = Int32(MSG_DONTWAIT) | Int32(bitPattern: UInt32(truncatingIfNeeded: MSG_NOSIGNAL))
    let sent = send(2, base, count, flags)
    if sent >= 0 || clinux_errno() != ENOTSOCK { return sent }
    // A file has its position in the description that all writers share, and never makes one wait.
    var status = stat()
    if fstat(2, &status) == 0, status.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) {
      return clinux_write(2, base, count)
    }
    // Anything else is opened anew, so that O_NONBLOCK is set on a description of our own and not on the
    // one that other processes share.
    let own = clinux_open(
      "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY | O_CLOEXEC)
    if own >= 0 {
      defer { close(own) }
      return clinux_write(own, base, count)
    }
    var ready = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
    if poll(&ready, 1, 0) == 1, ready.revents == Int16(POLLOUT) {
      return clinux_write(2, base, count)
    }
    return -1
  }
}
