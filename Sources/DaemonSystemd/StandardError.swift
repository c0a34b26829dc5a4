// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Writes to standard error without blocking, and without a signal when there is no reader or no room: a daemon whose
/// standard error is a full pipe must still end. Text that does not fit is dropped.
///
/// Any thread may call it; lines of up to `PIPE_BUF` bytes are not interleaved with others.
package enum StandardError {
  /// Writes text of any origin as one line, escaped by ``VisibleText/line(_:)``; where standard error is the journal's,
  /// with its priority. Returns false when not all of it was written.
  @discardableResult
  package static func writeLine(
    _ line: String, _ priority: JournalPriority = .info, isJournal: Bool = false
  ) -> Bool {
    writeText(VisibleText.line(line), priority, isJournal: isJournal)
  }

  /// Writes text that is safe to show, on one line or several; where standard error is the journal's, each with its
  /// priority. Returns false when not all of it was written.
  @discardableResult
  package static func writeText(
    _ text: String, _ priority: JournalPriority = .info, isJournal: Bool = false
  ) -> Bool {
    let lines = lines(of: text, prefix: isJournal ? "<\(priority.rawValue)>" : "")
    return write(lines, lines.count, to: 2) == lines.count
  }

  /// Each line after the prefix, and broken before journald breaks it (48 KiB) and takes a "<0>" in it for a priority.
  static func lines(of text: String, prefix: String) -> [UInt8] {
    var lines = Array(prefix.utf8)
    var start = 0
    for byte in text.utf8 {
      let isBreak = byte == UInt8(ascii: "\n")
      if isBreak || !prefix.isEmpty && lines.count - start >= 40_000 && byte & 0xc0 != 0x80 {
        lines += "\n\(prefix)".utf8
        start = lines.count
      }
      if !isBreak { lines.append(byte) }
    }
    lines.append(UInt8(ascii: "\n"))
    return lines
  }

  /// Whether standard error is the journal's, which takes `<3>` at the beginning of a line for its priority.
  package static func isJournal(_ environment: ServiceEnvironment) -> Bool {
    guard let stream = try? environment.journalStream else { return false }
    return stream == FileIdentity(of: STDERR_FILENO)
  }

  /// Returns the number of bytes that were written; a negative number on an error. Tests use another `descriptor`.
  static func write(
    _ base: UnsafePointer<UInt8>, _ count: Int, to descriptor: Int32,
    reopen: (Int32) -> Int32 = Self.reopen
  ) -> Int {
    // A socket (the journal's) supports MSG_DONTWAIT.
    let flags = Int32(MSG_DONTWAIT) | Int32(bitPattern: UInt32(truncatingIfNeeded: MSG_NOSIGNAL))
    let sent = send(descriptor, base, count, flags)
    if sent >= 0 || clinux_errno() != ENOTSOCK { return sent }
    var status = stat()
    _ = fstat(descriptor, &status)
    // A file has its position in the open file description that all writers share, and never blocks.
    if status.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) {
      return clinux_write(descriptor, base, count)
    }
    // Anything else is opened again, so that O_NONBLOCK is not set on the description that other processes share.
    let own = isTerminalMaster(status) ? -1 : reopen(descriptor)
    if own >= 0 {
      defer { close(own) }
      return clinux_write(own, base, count)
    }
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&ready, 1, 0) == 1, ready.revents == Int16(POLLOUT) else { return -1 }
    // PIPE_BUF bytes fit, and perhaps no more (pipe(7)).
    let room = Int(PIPE_BUF)
    guard count > room else { return clinux_write(descriptor, base, count) }
    let mark = Array("… (cut: no room)\n".utf8)
    var kept = room - mark.count
    // Not in the middle of a character.
    while kept > 0, base[kept] & 0xc0 == 0x80 { kept -= 1 }
    let cut = UnsafeBufferPointer(start: base, count: kept) + mark
    return clinux_write(descriptor, cut, cut.count) == cut.count ? kept : -1
  }

  private static func reopen(_ descriptor: Int32) -> Int32 {
    clinux_open(
      "/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY | O_CLOEXEC)
  }

  /// Whether the file is the master of a pseudoterminal, which Finit passes to services as standard error. Opening it
  /// again would make another terminal, without a reader. Its device number is the same on every Linux: `/dev/ptmx` is
  /// 5, 2.
  private static func isTerminalMaster(_ status: stat) -> Bool {
    status.st_mode & mode_t(S_IFMT) == mode_t(S_IFCHR) && status.st_rdev == 5 << 8 | 2
  }
}
