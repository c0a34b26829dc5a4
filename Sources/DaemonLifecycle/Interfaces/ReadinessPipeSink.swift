// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Synchronization

/// The readiness notification of s6, which dinit, OpenRC and Finit support too: it writes a newline to a descriptor
/// when the daemon is ready, and closes it. Closed without a newline, it means that the start has failed.
///
/// It never blocks. If the byte can't be written at once, the listening thread tries again; in a mock, the next fact
/// does.
final class ReadinessPipeSink: LifecyclePart {
  private struct State {
    /// The descriptor, owned and open; -1 once it is closed.
    var descriptor: Int32
    /// Its file. Other code may close the descriptor, as closefrom(3) does, and another file may get its number.
    let file: FileIdentity?
    /// Whether the daemon has become ready, so that a newline must be written.
    var isReady = false
    var backoff = Backoff(longest: .seconds(1))
  }

  private let state: Mutex<State>
  private let warn: @Sendable (String) -> Void

  /// - Parameters:
  ///   - descriptor: Open for writing; the sink owns it.
  ///   - warn: Receives a sentence about a problem, under this part's lock.
  init(_ descriptor: Int32, warn: @escaping @Sendable (String) -> Void) {
    state = Mutex(State(descriptor: descriptor, file: FileIdentity(of: descriptor)))
    self.warn = warn
  }

  deinit { state.withLock { Self.close(&$0) } }

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    state.withLock { state in
      if case .launched = fact { state.isReady = true }
      let retry = write(&state)
      switch fact {
      // A daemon that was ready may still owe the newline.
      case .terminating where !state.isReady, .terminated, .closed:
        Self.close(&state)
        return nil
      default: return retry
      }
    }
  }

  func wake(_: (SourceInput) -> Void) -> MonotonicTime? {
    state.withLock { state in
      state.backoff.grow()
      return write(&state)
    }
  }

  /// Writes the newline if it is due. Returns when to try again.
  private func write(_ state: inout State) -> MonotonicTime? {
    guard state.isReady, state.descriptor >= 0 else { return nil }
    let isOurs = FileIdentity(of: state.descriptor) == state.file
    let error = isOurs ? Self.writeNewline(to: state.descriptor) : EBADF
    if error == EAGAIN { return state.backoff.nextAttempt }
    Self.close(&state)
    if error != 0 {
      let reason = "\(String(cString: strerror(error))) (errno \(error))"
      warn(
        "The init was not notified that the daemon is ready: could not write a newline: \(reason).")
    }
    return nil
  }

  /// Writes the newline; returns `errno`, or 0; `EAGAIN` if it would block. The open file may be shared with other
  /// processes, so it is not made non-blocking, but polled first; one byte fits if there is any room.
  private static func writeNewline(to descriptor: Int32) -> Int32 {
    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&request, 1, 0) > 0 else { return EAGAIN }
    var newline = UInt8(ascii: "\n")
    while clinux_write(descriptor, &newline, 1) != 1 {
      let error = clinux_errno()
      if error != EINTR { return error }
    }
    return 0
  }

  private static func close(_ state: inout State) {
    if state.descriptor >= 0, FileIdentity(of: state.descriptor) == state.file {
      _ = CLinux.close(state.descriptor)
    }
    state.descriptor = -1
  }
}

extension LifecycleInterface {
  /// An inherited descriptor to which a newline is written when the daemon becomes ready, as s6, dinit, OpenRC and Finit
  /// expect.
  ///
  /// ```swift
  /// // s6: a file notification-fd with the line 3.
  /// configuration.interfaces.append(.readinessDescriptor(3))
  /// ```
  ///
  /// The newline is written once, when the hooks of the launch have ended, and the descriptor is closed. A launch that
  /// fails closes it without a newline.
  ///
  /// The start takes the descriptor over. Start the subject before other code opens descriptors, which might get that
  /// number. A descriptor that can't be used, such as a standard stream, one of `LISTEN_FDS`, or no pipe, FIFO or
  /// socket, is logged and ignored. See <doc:RunningUnderOtherInits>.
  ///
  /// - Parameter number: Its number. Default `nil`: the value of the environment variable `NOTIFY_FD`, if the init sets
  ///   it.
  public static func readinessDescriptor(_ number: Int32? = nil) -> Self {
    Self("readiness descriptor", number == nil ? .service : .local) { wiring in
      do throws(SystemdError) {
        var used = number
        if used == nil { used = try wiring.environment.readinessDescriptor }
        guard let used else { return }
        let descriptor = try OwnedDescriptor.takeInherited(
          used, from: number == nil ? "NOTIFY_FD" : "readinessDescriptor", in: wiring.environment)
        wiring.parts.append(ReadinessPipeSink(descriptor.release(), warn: wiring.warn))
      } catch { wiring.note("\(error)") }
    }
  }
}
