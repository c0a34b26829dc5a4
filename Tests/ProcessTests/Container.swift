// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport
import XCTest

/// A daemon as process 1 of a pid namespace of its own, as a container without an init has it.
///
/// The kernel spares process 1 every signal that it does not handle, whoever sends it; from inside even SIGKILL.
final class Container {
  /// unshare(1), which waits for the daemon and ends as it does.
  let process: ChildProcess
  /// The daemon, as seen from here.
  let pid: pid_t
  private let hasUserNamespace: Bool

  /// Throws `XCTSkip`, with the reason, where no pid namespace can be made.
  init(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:],
    until first: String, stderrToStdout: Bool = false
  ) throws {
    let command = try Self.command()
    hasUserNamespace = command.contains("--user")
    process = try ChildProcess(
      "/usr/bin/env", command + [built(executable)] + arguments,
      environment: environment,
      stderrToStdout: stderrToStdout)
    try process.expect(first)
    let children = Self.children(of: process.pid)
    guard let pid = children.first, children.count == 1 else {
      throw TestFailure("unshare has the children \(children)")
    }
    self.pid = pid
  }

  static func command() throws -> [String] {
    let ways = [["unshare"], ["unshare", "--user", "--map-root-user"]].map {
      $0 + ["--pid", "--fork", "--mount-proc"]
    }
    var reasons: [String] = []
    for way in ways {
      let trial = try ChildProcess("/usr/bin/env", way + ["true"], stderrToStdout: true)
      if try trial.wait() == .status(0) { return way }
      reasons += trial.output
    }
    throw XCTSkip("no pid namespace can be made: \(reasons.joined(separator: "; "))")
  }

  func send(_ signal: Int32) { kill(pid, signal) }

  /// The daemon's number where it lives.
  var innerPID: Int? {
    processStatus("NSpid", of: pid).flatMap { $0.split(separator: "\t").last }.flatMap { Int($0) }
  }

  /// Starts a process in the namespace whose parent ends before it, and returns its number as seen from here.
  func makeOrphan() throws -> pid_t {
    try run("sleep 1000 >/dev/null 2>&1 9>&- &")
    guard let orphan = children.first else { throw TestFailure("there is no orphan") }
    return orphan
  }

  /// Runs a shell's command in the namespace, as `docker exec` does.
  func run(_ command: String) throws {
    let user = hasUserNamespace ? ["--user", "--preserve-credentials"] : []
    let shell = try ChildProcess(
      "/usr/bin/env",
      ["nsenter", "--target", "\(pid)"] + user + ["--pid", "sh", "-c", command],
      stderrToStdout: true)
    guard try shell.wait() == .status(0) else { throw TestFailure("\(command): \(shell.output)") }
  }

  /// Those of the daemon, the dead ones too.
  var children: [pid_t] { Self.children(of: pid) }

  static func isZombie(_ pid: pid_t) -> Bool {
    processStatus("State", of: pid)?.hasPrefix("Z") == true
  }

  static func children(of pid: pid_t) -> [pid_t] {
    lines(of: "/proc/\(pid)/task/\(pid)/children").flatMap { $0.split(separator: " ") }
      .compactMap { pid_t($0) }
  }

  private static func lines(of path: String) -> [Substring] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 16384)
    let count = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
  }
}
