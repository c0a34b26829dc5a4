// SPDX-License-Identifier: Apache-2.0
import CBench
import Glibc

/// A contestant's process. Its descriptor 3 is a pipe to us; see bench.h.
package struct Child {
  package let pid: Int32
  /// When it was asked for.
  package let spawned: UInt64
  private let channel: Int32
  private let path: String
  /// In ms.
  private let patience: Int32

  package init(
    _ program: Program, adding arguments: [String] = [], patience: Int32 = 10_000
  ) throws {
    self.patience = patience
    path = ([program.path] + program.arguments + arguments).joined(separator: " ")
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw HarnessError("pipe: errno \(errno)") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], Int32(BENCH_CHANNEL))
    let argv: [UnsafeMutablePointer<CChar>?] =
      ([program.path] + program.arguments + arguments).map { strdup($0) } + [nil]
    // Nothing of the harness's own environment: a service's would wake what is asleep elsewhere.
    let names: [String] = ["PATH", "HOME", "LD_LIBRARY_PATH"]
    let kept: [String] = names.compactMap { name in
      getenv(name).map { "\(name)=" + String(cString: $0) }
    }
    let envp: [UnsafeMutablePointer<CChar>?] =
      (kept + program.environment.map { "\($0)=\($1)" }).map { strdup($0) } + [nil]
    defer { for string in argv + envp { free(string) } }
    var pid = pid_t()
    spawned = bench_now()
    let failure = posix_spawn(&pid, program.path, &actions, nil, argv, envp)
    close(ends[1])
    guard failure == 0 else {
      close(ends[0])
      throw HarnessError("\(program.path) did not start: errno \(failure)")
    }
    self.pid = pid
    channel = ends[0]
  }

  /// Waits for it to be ready, and returns the time of that.
  @discardableResult package func untilReady() throws -> UInt64 {
    var byte: UInt8 = 0
    try read(into: &byte, count: 1)
    return bench_now()
  }

  /// The next stamp.
  package func stamp() throws -> UInt64 {
    var time: UInt64 = 0
    try read(into: &time, count: 8)
    return time
  }

  /// All that it says until its end.
  package func output() throws -> String {
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      try waitForInput()
      let count = Glibc.read(channel, &buffer, buffer.count)
      guard count > 0 else { break }
      text += buffer[..<count]
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// What it has measured itself: lines of a metric and a number.
  package func values() throws -> [(metric: String, value: Double)] {
    try output().split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 2, let value = Double(words[1]) else { return nil }
      return (String(words[0]), value)
    }
  }

  /// Sends it a signal, and returns the time just before.
  @discardableResult package func send(_ signal: Int32) -> UInt64 {
    let time = bench_now()
    kill(pid, signal)
    return time
  }

  /// Waits for its end, and returns its wait status and the time.
  @discardableResult package func reap() -> (status: Int32, time: UInt64) {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    let time = bench_now()
    close(channel)
    return (status, time)
  }

  package func end() {
    send(SIGKILL)
    reap()
  }

  private func read(into target: UnsafeMutableRawPointer, count: Int) throws {
    try waitForInput()
    // Written in one piece of less than PIPE_BUF, so read in one.
    guard Glibc.read(channel, target, count) == count else {
      throw HarnessError("\(path) ended or said too little")
    }
  }

  private func waitForInput() throws {
    var descriptor = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
    guard poll(&descriptor, 1, patience) == 1 else {
      throw TookTooLong("\(path) said nothing for \(patience / 1000) s")
    }
  }
}

/// What to start.
package struct Program {
  package var path: String
  package var arguments: [String] = []
  package var environment: [String: String] = [:]

  package init(path: String, arguments: [String] = []) {
    self.path = path
    self.arguments = arguments
  }
}

/// A contestant that is left out for it, and named.
package struct TookTooLong: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

package struct HarnessError: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

package func pause(milliseconds: Double) { usleep(UInt32(milliseconds * 1000)) }
