// SPDX-License-Identifier: Apache-2.0
package import Glibc

/// A real child process with pipes, for tests: every wait is for a fact and has a deadline.
///
/// Unchecked, since nothing in it is guarded: a test uses it from one thread at a time.
package final class ChildProcess: @unchecked Sendable {
  package enum Exit: Equatable, Sendable {
    case status(Int32)
    case signal(Int32)
  }

  package let pid: pid_t
  package private(set) var output: [String] = []
  private let stdoutRead: Int32
  /// Its write end is open in the child, and in what the child forks, for as long as they live.
  private let lifeRead: Int32
  /// -1 when there is none, or it is closed.
  private var input: Int32
  private var partial: [UInt8] = []
  private var isAtEnd = false
  private var exit: Exit?
  /// How many lines have been looked at by `expect`.
  private var seen = 0

  /// - Parameter ignoring: signals that the child starts with ignored, as nohup(1) does for SIGHUP.
  /// - Parameter blocking: signals that it starts with blocked, as children of Dispatch's threads do.
  /// - Parameter stderr: the path of what its standard error is; by default it is ours.
  /// - Parameter terminal: the path of the terminal that it controls, as the leader of a session of its own.
  /// - Parameter hasInput: whether its standard input is a pipe, until `closeInput`.
  package init(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:],
    ignoring: [Int32] = [], blocking: [Int32] = [], stderrToStdout: Bool = false,
    stderr: String? = nil, terminal: String? = nil, hasInput: Bool = false
  ) throws {
    var out: [Int32] = [-1, -1]
    var life: [Int32] = [-1, -1]
    var into: [Int32] = [-1, -1]
    guard openPipe(&out), openPipe(&life), !hasInput || openPipe(&into)
    else { throw TestFailure("pipe") }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    // The first terminal that the leader of a session opens is the session's.
    posix_spawn_file_actions_addopen(&actions, 0, terminal ?? "/dev/null", O_RDWR, 0)
    if hasInput { posix_spawn_file_actions_adddup2(&actions, into[0], 0) }
    posix_spawn_file_actions_adddup2(&actions, out[1], 1)
    if stderrToStdout { posix_spawn_file_actions_adddup2(&actions, out[1], 2) }
    if let stderr {
      posix_spawn_file_actions_addopen(&actions, 2, stderr, O_WRONLY | O_NOCTTY, 0)
    }
    posix_spawn_file_actions_adddup2(&actions, life[1], 9)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    Self.set(
      &attributes, ignoring: ignoring, blocking: blocking, ownSession: terminal != nil)
    let argv = ([executable] + arguments).map { strdup($0) } + [nil]
    let envp = Self.withInherited(environment).map { strdup("\($0)=\($1)") } + [nil]
    defer {
      for pointer in argv + envp { free(pointer) }
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    for ignored in ignoring { signal(ignored, SIG_IGN) }
    defer { for ignored in ignoring { signal(ignored, SIG_DFL) } }
    var pid: pid_t = 0
    let failure = posix_spawn(&pid, executable, &actions, &attributes, argv, envp)
    for end in [out[1], life[1], into[0]] where end >= 0 { close(end) }
    guard failure == 0 else {
      throw TestFailure("spawn \(executable): \(String(cString: strerror(failure)))")
    }
    self.pid = pid
    stdoutRead = out[0]
    lifeRead = life[0]
    input = into[1]
  }

  /// A group of its own; these signals ignored or blocked, the others as they are by default.
  private static func set(
    _ attributes: inout posix_spawnattr_t, ignoring: [Int32], blocking: [Int32], ownSession: Bool
  ) {
    var mask = sigset_t()
    var defaults = sigset_t()
    sigemptyset(&mask)
    for signal in blocking { sigaddset(&mask, signal) }
    sigfillset(&defaults)
    for signal in ignoring { sigdelset(&defaults, signal) }
    posix_spawnattr_setsigmask(&attributes, &mask)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    // POSIX_SPAWN_SETSID, which is not imported; a session begins with a group.
    let group = ownSession ? 0x80 : POSIX_SPAWN_SETPGROUP
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group))
  }

  /// With what a child needs of ours.
  private static func withInherited(_ environment: [String: String]) -> [String: String] {
    var variables = environment
    for name in ["PATH", "HOME", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TSAN_OPTIONS", "TZ"] {
      if let value = getenv(name), variables[name] == nil {
        variables[name] = String(cString: value)
      }
    }
    return variables
  }

  deinit {
    if exit == nil {
      Glibc.kill(-pid, SIGKILL)
      waitpid(pid, nil, 0)
    }
    close(stdoutRead)
    close(lifeRead)
    closeInput()
  }

  package func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// The files that are mapped into it. Foundation reads no more than a page of a file in /proc, whose size is 0.
  package func mappedFiles() -> Set<String> {
    guard let file = fopen("/proc/\(pid)/maps", "re") else { return [] }
    defer { fclose(file) }
    var files: Set<String> = []
    var (line, room) = (UnsafeMutablePointer<CChar>?.none, 0)
    defer { free(line) }
    while getline(&line, &room, file) > 0, let line {
      if let path = String(cString: line).split(whereSeparator: \.isWhitespace).last,
        path.hasPrefix("/")
      {
        files.insert(String(path))
      }
    }
    return files
  }

  package func send(_ signal: Int32) { Glibc.kill(pid, signal) }

  /// Waits for the next line that `matches`, and returns it.
  @discardableResult
  package func line(
    within seconds: Double = 100, file: StaticString = #filePath, line: UInt = #line,
    where matches: (String) -> Bool
  ) throws -> String {
    let deadline = now() + seconds
    while true {
      while seen < output.count {
        seen += 1
        if matches(output[seen - 1]) { return output[seen - 1] }
      }
      guard !isAtEnd, readMore(until: deadline) else {
        throw TestFailure(
          "no such line; the child said:\n\(output.joined(separator: "\n"))", file, line)
      }
    }
  }

  /// Waits for a line that begins so.
  @discardableResult
  package func expect(
    _ prefix: String, within seconds: Double = 100, file: StaticString = #filePath,
    line: UInt = #line
  ) throws -> String {
    try self.line(within: seconds, file: file, line: line) { $0.hasPrefix(prefix) }
  }

  /// Waits for the end of the process, reading all its output unless `reading` is false.
  package func wait(
    within seconds: Double = 100, reading: Bool = true, file: StaticString = #filePath,
    line: UInt = #line
  ) throws -> Exit {
    if let exit { return exit }
    try waitUntilEnded(within: seconds, reading: reading, file: file, line: line)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    let exit: Exit = status & 0x7f == 0 ? .status(status >> 8 & 0xff) : .signal(status & 0x7f)
    self.exit = exit
    return exit
  }

  /// As `wait`, but the process can still be sent signals: until `wait`, no other gets its number.
  package func waitUntilEnded(
    within seconds: Double = 100, reading: Bool = true, file: StaticString = #filePath,
    line: UInt = #line
  ) throws {
    let deadline = now() + seconds
    if reading { while !isAtEnd, readMore(until: deadline) {} }
    var life = pollfd(fd: lifeRead, events: Int16(POLLIN), revents: 0)
    while poll(&life, 1, milliseconds(until: deadline)) < 0 {}
    guard life.revents != 0, isAtEnd || !reading else {
      throw TestFailure(
        "it, or what has its output, is still alive after \(seconds) s; it said:\n\(output.joined(separator: "\n"))",
        file, line)
    }
  }

  private func readMore(until deadline: Double) -> Bool {
    var ready = pollfd(fd: stdoutRead, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, milliseconds(until: deadline)) < 0 {}
    guard ready.revents != 0 else { return false }
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = read(stdoutRead, &buffer, buffer.count)
    guard count > 0 else {
      isAtEnd = true
      if !partial.isEmpty { output.append(String(decoding: partial, as: UTF8.self)) }
      return true
    }
    for byte in buffer[..<count] {
      if byte == UInt8(ascii: "\n") {
        output.append(String(decoding: partial, as: UTF8.self))
        partial = []
      } else {
        partial.append(byte)
      }
    }
    return true
  }

  private func milliseconds(until deadline: Double) -> Int32 {
    Int32(max(0, min(1_000_000, (deadline - now()) * 1000)))
  }
}

/// Why a test can't go on, and where in it.
package struct TestFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ what: String, _ file: StaticString = #filePath, _ line: UInt = #line) {
    description = "\(file):\(line): \(what)"
  }
}

/// Seconds of the monotonic clock.
package func now() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
