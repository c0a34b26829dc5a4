// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// Where lines go. Neither function ever waits for a reader, so both may be called anywhere.
protocol LineOutput: Sendable {
  /// Prints the line now; false, and nothing is printed, when there is no room for it.
  func printIfRoom(_ line: String) -> Bool
  /// Prints the line now or, when there is no room, as soon as there is.
  func print(_ line: String)
}

/// Lines on a descriptor, each with one write, so that a pipe's reader gets it at once and whole. What others have put
/// into a line, such as control characters, is escaped: it stays one line, and moves no cursor.
///
/// Lines that can't be read any more, after a closed pipe or beyond the limit of a file's size, are dropped.
final class Console: LineOutput {
  private struct State {
    /// Lines, and the rest of one at the front, that have found no room yet. What is printed next has to
    /// wait behind them.
    var waiting: [ArraySlice<UInt8>] = []
    /// Whether a task tries again, which it does while lines wait.
    var hasRetry = false
  }

  private let state = Mutex(State())
  private let descriptor: Descriptor
  /// Whether `descriptor` was opened here.
  private let isOwned: Bool
  private let clock: LifecycleClock

  /// A pipe that has room has room for this much.
  private static let longestLine = Int(PIPE_BUF)
  private static let mostWaiting = 1000
  private static let retryTime = Duration.milliseconds(50)

  init(_ given: Descriptor, clock: LifecycleClock) {
    self.clock = clock
    // Others may fill a pipe between poll and write, so it must not block. O_NONBLOCK belongs to the open file,
    // which we share with the process that passed it to us, so it is opened again.
    var status = stat()
    let isPipe = fstat(given.number, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    let own =
      isPipe ? open("/proc/self/fd/\(given.number)", O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1
    isOwned = own >= 0
    descriptor = isOwned ? Descriptor(number: own) : given
  }

  deinit { if isOwned { close(descriptor.number) } }

  // Not inlined, as `isStillWaiting`: a lock must be taken and released on one thread, and the asynchronous functions that
  // call these change theirs.
  @inline(never) func printIfRoom(_ line: String) -> Bool {
    state.withLock { state in
      writeWaiting(&state)
      guard state.waiting.isEmpty else { return false }
      let bytes = Self.bytes(line)
      let count = writeNow(bytes)
      if count > 0, count < bytes.count { state.waiting = [bytes.dropFirst(count)] }
      return count > 0
    }
  }

  func print(_ line: String) {
    let startsRetry = state.withLock { state in
      guard state.waiting.count < Self.mostWaiting else { return false }
      state.waiting.append(Self.bytes(line))
      writeWaiting(&state)
      if state.waiting.isEmpty || state.hasRetry { return false }
      state.hasRetry = true
      return true
    }
    if startsRetry { retry() }
  }

  private func retry() {
    Task.detached { [weak self, clock] in
      repeat { try? await clock.sleep(for: Self.retryTime) } while self?.isStillWaiting() == true
    }
  }

  @inline(never) private func isStillWaiting() -> Bool {
    state.withLock { state in
      writeWaiting(&state)
      state.hasRetry = !state.waiting.isEmpty
      return state.hasRetry
    }
  }

  private func writeWaiting(_ state: inout State) {
    while let line = state.waiting.first {
      let count = writeNow(line)
      guard count == line.count else {
        state.waiting[0] = line.dropFirst(count)
        return
      }
      state.waiting.removeFirst()
    }
  }

  /// How many bytes were written: none when there is no room, on the disk either; all when there is no reader.
  private func writeNow(_ bytes: ArraySlice<UInt8>) -> Int {
    while true {
      var polled = pollfd(fd: descriptor.number, events: Int16(POLLOUT), revents: 0)
      if poll(&polled, 1, 0) == 0 { return 0 }
      let count = bytes.withUnsafeBytes { write(descriptor.number, $0.baseAddress, $0.count) }
      if count >= 0 { return count }
      if errno == EAGAIN || errno == ENOSPC || errno == EDQUOT { return 0 }
      if errno != EINTR { return bytes.count }
    }
  }

  private static func bytes(_ line: String) -> ArraySlice<UInt8> {
    var bytes = VisibleText.line(line).utf8.prefix(longestLine - 1)[...]
    // No half of a character at the end.
    while String(bytes) == nil { bytes.removeLast() }
    return Array(bytes) + [UInt8(ascii: "\n")]
  }
}
