// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

/// An open watch for pressure: a descriptor for an event loop.
///
/// The kernel's pressure files have two pitfalls:
/// - Polling *consumes* the event. The descriptor must be polled directly, or be in one epoll set that is waited on
///   directly: in a nested set, or one that is polled, the outer poll consumes the event and the inner one finds
///   nothing.
/// - When the control group is removed, the descriptor is ready with EPOLLERR for ever. An event loop spins until it
///   removes the descriptor, so it must call `consume()` and handle `.gone`.
///
/// Any thread may call its methods, one at a time. Source: systemd's "Resource Pressure Handling", the kernel's "PSI".
package final class PressureMonitor: Sendable {
  package enum Outcome: Sendable, Hashable {
    /// Memory is short.
    case pressure
    /// Nothing but the echo of the bytes that were written at first.
    case quiet
    /// No more events will occur: remove the descriptor from the event loop.
    case gone
  }

  enum Form: Equatable { case file, fifo, socket }

  package let watch: PressureWatch
  let form: Form
  private let descriptor: OwnedDescriptor
  /// The bytes that were written to a FIFO, which the first read returns; empty once something was read.
  private let echo: Mutex<[UInt8]>

  /// The descriptor for poll(2) or epoll; close-on-exec, valid as long as the monitor exists.
  package var fileDescriptor: Int32 { descriptor.rawValue }

  /// The events to wait for: EPOLLPRI for a pressure file, EPOLLIN for a FIFO or a socket.
  package var pollEvents: UInt32 { UInt32(form == .file ? POLLPRI : POLLIN) }

  /// Opens the file that `watch` names, and writes its bytes at once.
  package init(_ watch: PressureWatch) throws(SystemdError) {
    guard !watch.isOff else {
      throw .invalidArgument(
        "Watching for pressure is switched off (\(watch.path)); do not open it.")
    }
    var status = stat()
    guard stat(watch.path, &status) == 0 else { throw watch.failure("find") }
    let isSocket = try watch.form(of: status) == .socket
    let descriptor = isSocket ? try watch.connect() : try watch.open()
    // The file that was opened, not the one that had the path before.
    guard fstat(descriptor.rawValue, &status) == 0 else { throw watch.failure("find") }
    form = try watch.form(of: status)
    if form == .file { try watch.checkFile(descriptor.rawValue) }
    try watch.arm(descriptor.rawValue, form)
    self.watch = watch
    self.descriptor = descriptor
    echo = Mutex(form == .fifo ? watch.write : [])
  }

  /// Handles a ready descriptor, and reads the data of a FIFO or socket. It does not block.
  package func consume() -> Outcome {
    switch form {
    case .file: stillThere()
    case .fifo, .socket: drain()
    }
  }

  /// Returns the outcome for a pressure file. Being ready was the event; a further poll may consume the next one too,
  /// which is reported as the same pressure.
  private func stillThere() -> Outcome {
    var ready = pollfd(fd: fileDescriptor, events: Int16(POLLPRI), revents: 0)
    guard poll(&ready, 1, 0) >= 0 else { return .pressure }
    return Self.isGone(ready.revents) ? .gone : .pressure
  }

  /// Whether the result of poll(2) means that no more events will occur.
  static func isGone(_ events: Int16) -> Bool { events & Int16(POLLERR | POLLNVAL) != 0 }

  private func drain() -> Outcome {
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      var first: [UInt8] = []
      var total = 0
      var isOver = false
      // Bounded, for a peer that never stops writing: the rest makes the descriptor ready again.
      for _ in 0..<64 {
        let count = read(fileDescriptor, buffer.baseAddress, buffer.count)
        if count < 0, clinux_errno() == EINTR { continue }
        if count < 0, clinux_errno() == EAGAIN { break }
        if count <= 0 {
          isOver = true
          break
        }
        if total == 0 { first = Array(buffer[..<count]) }
        total += count
      }
      if total > 0 { return isEcho(first, total) ? .quiet : .pressure }
      return isOver ? .gone : .quiet
    }
  }

  private func isEcho(_ first: [UInt8], _ total: Int) -> Bool {
    echo.withLock { echo in
      defer { echo = [] }
      return total == first.count && first == echo
    }
  }
}

extension PressureWatch {
  fileprivate func form(of status: stat) throws(SystemdError) -> PressureMonitor.Form {
    switch status.st_mode & mode_t(S_IFMT) {
    case mode_t(S_IFREG): return .file
    case mode_t(S_IFIFO): return .fifo
    case mode_t(S_IFSOCK): return .socket
    default:
      throw .invalidArgument(
        "\(path) is neither a file, a FIFO nor a socket: it can't be watched for pressure.")
    }
  }

  /// Opens a file or a FIFO for reading and writing, so that a FIFO does not hang up when its writers close it.
  fileprivate func open() throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard number >= 0 else { throw failure("open") }
    return OwnedDescriptor(owning: number)
  }

  fileprivate func connect() throws(SystemdError) -> OwnedDescriptor {
    let number = socket(
      AF_UNIX, CLINUX_SOCK_STREAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    guard number >= 0 else { throw failure("open a socket for") }
    let descriptor = OwnedDescriptor(owning: number)
    guard clinux_connect_unix(number, path, path.utf8.count, false) == 0 else {
      throw failure("connect to")
    }
    return descriptor
  }

  /// Checks that the file is a pressure file: bytes must not be written into any other file, least of all into another
  /// one of the kernel's.
  fileprivate func checkFile(_ number: Int32) throws(SystemdError) {
    guard !write.isEmpty else {
      throw .invalidArgument(
        "There is nothing to write into \(path): without a trigger it never reports pressure.")
    }
    let answer = clinux_is_pressure_file(number)
    guard answer >= 0 else { throw failure("read") }
    guard answer == 1 else {
      throw .invalidArgument(
        "\(path) is an ordinary file or another of the kernel's, not one of its pressure files:"
          + " nothing was written into it.")
    }
  }

  fileprivate func arm(_ number: Int32, _ form: PressureMonitor.Form) throws(SystemdError) {
    guard !write.isEmpty else { return }
    // A socket whose peer has closed it must not end this process (SIGPIPE).
    let flags = Int32(bitPattern: UInt32(truncatingIfNeeded: MSG_NOSIGNAL))
    var written: Int
    repeat {
      written =
        form == .socket
        ? send(number, write, write.count, flags) : clinux_write(number, write, write.count)
    } while written < 0 && clinux_errno() == EINTR
    guard written >= 0 else { throw failure("arm") }
    guard written == write.count else {
      throw .malformedInput("\(path) took only \(written) of the \(write.count) bytes that arm it.")
    }
  }

  /// The error of the last system call.
  fileprivate func failure(_ verb: String) -> SystemdError {
    .system("\(verb) \(path) to watch for pressure", errno: clinux_errno())
  }
}
