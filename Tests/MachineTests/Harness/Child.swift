// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Synchronization

/// A child process, with sockets for its standard streams.
///
/// Its methods wait for facts, with deadlines, and block their thread: call them in `offPool`.
///
/// Unchecked since `pending` is not guarded: it belongs to whoever calls `line(until:)`, one at a time.
final class Child: @unchecked Sendable {
  let pid: pid_t
  /// Closing it is how the child learns that it is over; -1 when it is closed.
  private let input: Mutex<Int32>
  private let output: Int32
  private let errors: Int32
  private var pending: [UInt8] = []

  /// - Parameter ownSession: signals to our process group and from our terminal do not reach it.
  init(
    _ arguments: [String], environment: [String: String]? = nil, ownSession: Bool = false,
    errorsToOurs: Bool = false
  ) throws {
    // Each: our end, and the child's.
    let pipes = try (0..<3).map { _ in try Self.socketPair() }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, pipes[0][1], 0)
    posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 1)
    if !errorsToOurs { posix_spawn_file_actions_adddup2(&actions, pipes[2][1], 2) }
    var attributes = posix_spawnattr_t()
    Self.resetSignals(&attributes, ownSession: ownSession)
    let argv = arguments.map { strdup($0) } + [nil]
    let variables = environment ?? ProcessInfo.processInfo.environment
    let envp = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer {
      for pointer in argv + envp { free(pointer) }
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
      for pipe in pipes { close(pipe[1]) }
    }
    var pid: pid_t = 0
    let failure = posix_spawnp(&pid, arguments[0], &actions, &attributes, argv, envp)
    guard failure == 0 else {
      for pipe in pipes { close(pipe[0]) }
      throw MachineFailure("spawn \(arguments): \(String(cString: strerror(failure)))")
    }
    self.pid = pid
    input = Mutex(pipes[0][0])
    output = pipes[1][0]
    errors = pipes[2][0]
  }

  deinit {
    closeInput()
    close(output)
    close(errors)
  }

  /// Not a pipe, because Swift's Glibc module has no pipe2(2), and other tests fork at the same time: the
  /// child of another must not hold an end of ours.
  private static func socketPair() throws -> [Int32] {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      throw MachineFailure("socketpair: \(String(cString: strerror(errno)))")
    }
    return ends
  }

  /// Dispatch's threads block signals, and children would inherit that.
  private static func resetSignals(_ attributes: inout posix_spawnattr_t, ownSession: Bool) {
    var mask = sigset_t()
    var defaults = sigset_t()
    sigemptyset(&mask)
    sigfillset(&defaults)
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setsigmask(&attributes, &mask)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    if ownSession { flags |= 0x80 }  // POSIX_SPAWN_SETSID, which is not imported
    posix_spawnattr_setflags(&attributes, Int16(flags))
  }

  // MARK: Input

  func closeInput() {
    input.withLock {
      if $0 >= 0 { close($0) }
      $0 = -1
    }
  }

  /// What does not fit into the socket waits for the child to read.
  private func write(_ bytes: [UInt8]) {
    let descriptor = input.withLock { $0 }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }  // it does not read: its affair
      rest = rest.dropFirst(count)
    }
  }

  // MARK: Output

  /// The next line; `nil` at the end of the output or at the deadline.
  func line(until deadline: ContinuousClock.Instant) -> String? {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: pending[..<end], as: UTF8.self)
        pending.removeSubrange(...end)
        return line
      }
      guard Self.wait(for: [output], until: deadline) != nil,
        Self.read(output, into: &pending)
      else { return nil }
    }
  }

  /// Feeds it, reads both outputs to their ends, and reaps it; `nil` when it is not over at the deadline.
  func finish(input: [UInt8], until deadline: ContinuousClock.Instant) -> Output? {
    write(input)
    closeInput()
    var stdout: [UInt8] = []
    var stderr: [UInt8] = []
    var open: Set<Int32> = [output, errors]
    while !open.isEmpty {
      guard let ready = Self.wait(for: Array(open), until: deadline) else { return nil }
      for descriptor in ready {
        let more =
          descriptor == output
          ? Self.read(output, into: &stdout) : Self.read(errors, into: &stderr)
        if !more { open.remove(descriptor) }
      }
    }
    return Output(
      status: reap(), stdout: String(decoding: stdout, as: UTF8.self),
      stderr: String(decoding: stderr, as: UTF8.self))
  }

  /// Waits for its end: the exit status, or 128 + the signal that killed it.
  @discardableResult
  func reap() -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
  }

  private static func wait(
    for descriptors: [Int32], until deadline: ContinuousClock.Instant
  ) -> [Int32]? {
    var polls = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while true {
      let left = (deadline - .now) / .milliseconds(1)
      guard left > 0 else { return nil }
      let count = poll(&polls, nfds_t(polls.count), Int32(min(left.rounded(.up), 1e9)))
      if count > 0 { return polls.filter { $0.revents != 0 }.map(\.fd) }
    }
  }

  /// False at the end.
  private static func read(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    if count < 0 { return errno == EINTR }
    bytes += buffer[..<count]
    return count > 0
  }
}
