import CLinux

/// Writes to standard error without ever waiting for a reader: a daemon whose stderr is a full pipe must
/// still end. What does not fit is dropped.
enum StandardError {
  static func writeLine(_ line: String) {
    var text = line + "\n"
    text.withUTF8 { bytes in
      guard let base = bytes.baseAddress else { return }
      // A socket (the journal) takes MSG_DONTWAIT; anything else is opened anew, so that O_NONBLOCK is
      // set on a file description of our own and not on the one shared with other processes.
      if send(2, base, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) >= 0
        || clinux_errno() != ENOTSOCK
      {
        return
      }
      // A file has its position in the description that all writers share, and never makes one wait.
      var status = stat()
      if fstat(2, &status) == 0, status.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) {
        _ = write(2, base, bytes.count)
        return
      }
      let own = clinux_open(
        "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY | O_CLOEXEC)
      if own >= 0 {
        _ = write(own, base, bytes.count)
        close(own)
        return
      }
      var ready = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
      if poll(&ready, 1, 0) == 1, ready.revents & Int16(POLLOUT) != 0 {
        _ = write(2, base, bytes.count)
      }
    }
  }
}
