// SPDX-License-Identifier: Apache-2.0
internal import CLinux
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// The socket of a fake service manager, and the thread that listens to it.
///
/// Each query drains the socket first, under the lock, so its result includes all that was sent before. The thread
/// answers barriers when there is no query.
final class NotificationReceiver: Sendable {
  typealias Message = FakeServiceManager.Message

  struct State: ~Copyable {
    var messages: [Message] = []
    /// The index of the first message that no `next` has returned or skipped.
    var cursor = 0
    var rules = NotificationRules()
    var store: StoredDescriptors
    var isStopped = false
  }

  private let socket: OwnedDescriptor
  /// Written to end the thread.
  private let wake: OwnedDescriptor
  private let path: String?
  private let state: Mutex<State>

  init(address: String, limit: Int) throws(SystemdError) {
    let isAbstract = address.utf8.first == UInt8(ascii: "@")
    let name = isAbstract ? String(address.dropFirst()) : address
    let purpose = "listen for notifications at \(address)"
    let number = CLinux.socket(
      AF_UNIX, CLINUX_SOCK_DGRAM | CLINUX_SOCK_CLOEXEC | CLINUX_SOCK_NONBLOCK, 0)
    guard number >= 0 else { throw .system(purpose: purpose, errno: clinux_errno()) }
    socket = OwnedDescriptor(owning: number)
    let event = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard event >= 0 else { throw .system(purpose: purpose, errno: clinux_errno()) }
    wake = OwnedDescriptor(owning: event)
    var on: Int32 = 1
    guard
      setsockopt(number, SOL_SOCKET, SO_PASSCRED, &on, socklen_t(MemoryLayout<Int32>.size)) == 0,
      clinux_bind_unix(number, name, name.utf8.count, isAbstract) == 0
    else { throw .system(purpose: purpose, errno: clinux_errno()) }
    path = isAbstract ? nil : address
    state = Mutex(State(store: StoredDescriptors(limit: limit)))
    // All signals are blocked in it, so that it receives none meant for the daemon under test.
    guard Thread.spawn(named: "notifications", blocksSignals: true, { self.listen() }) else {
      throw .system(purpose: "start a thread for notifications", errno: EAGAIN)
    }
  }

  /// Ends the thread, which retains this object.
  func stop() {
    if let path { unlink(path) }
    state.withLock { $0.isStopped = true }
    eventfd_write(wake.rawValue, 1)
  }

  // MARK: Queries

  /// Receives everything that has been sent so far, then runs `body`.
  @discardableResult
  func update<T: Sendable>(_ body: (inout State) -> T) -> T {
    state.withLock { state in
      drain(&state)
      return body(&state)
    }
  }

  /// Returns the next matching message, and skips those before it; `nil` if it may still be sent.
  func next(
    _ deadline: MonotonicTime, where matches: (Message) -> Bool
  ) throws(SystemdError) -> Message? {
    let isLate = deadline.milliseconds == 0
    let (messages, first) = update { ($0.messages, $0.cursor) }
    // Outside of the lock: it is the test's code.
    if let index = messages[first...].firstIndex(where: matches) {
      update { $0.cursor = max($0.cursor, index + 1) }
      return messages[index]
    }
    guard isLate else { return nil }
    let seen = messages.suffix(5).map(\.description).joined(separator: "; ")
    throw .timedOut(
      purpose: "receive the notification waited for (\(messages.count) came"
        + (seen.isEmpty ? ")" : ", the last ones: \(seen))"))
  }

  // MARK: Receiving

  private func drain(_ state: inout State) {
    let capacity = NotifyMessage.maximumSize
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
      var received = clinux_received()
      while true {
        let size = clinux_receive_descriptors(
          socket.rawValue, buffer.baseAddress, capacity, &received)
        if size < 0 { return }
        let bytes = Array(buffer[..<min(size, capacity)])
        let descriptors = withUnsafeBytes(of: received.descriptors) {
          Array($0.bindMemory(to: Int32.self).prefix(received.descriptor_count))
        }
        let message = Message(
          bytes: bytes, descriptorCount: descriptors.count, senderPID: received.pid)
        take(message, descriptors, &state)
      }
    }
  }

  private func take(_ message: Message, _ descriptors: [Int32], _ state: inout State) {
    state.messages.append(message)
    state.rules.take(message, now: MonotonicTime.now().microseconds)
    let name = message["FDNAME"] ?? "stored"
    if message["FDSTOREREMOVE"] == "1" { state.store.remove(name: name) }
    guard message["FDSTORE"] == "1" else {
      // For a barrier, this is the answer.
      for number in descriptors { close(number) }
      return
    }
    let problem = state.store.store(descriptors, name: name, polled: message["FDPOLL"] != "0")
    if let problem { state.rules.note(problem, message) }
  }

  // MARK: The thread

  private func listen() {
    var entries = [
      pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: wake.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    while !update({ $0.isStopped }) { poll(&entries, 2, -1) }
  }
}
