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
    /// The resource is short.
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
    let opened = try PressureOpening(watch: watch).open()
    self.watch = watch
    form = opened.form
    descriptor = OwnedDescriptor(owning: opened.number)
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
