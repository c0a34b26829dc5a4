// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Synchronization
import TestSupport

/// A booted machine: a container whose process 1 is the systemd of a Debian release.
///
/// It is ended by the script that holds it when this process ends, however that happens.
final class Machine: Sendable {
  let release: Release
  /// What the machine sees as /share; it is there until `end()`.
  let share: String
  /// The machine's process 1, as this side sees it.
  private let leader: String
  /// `Tests/Machine/machine hold`: ends the machine when its standard input does.
  private let holder: ChildProcess

  // MARK: Boot

  /// The machine of a release that tests share; booted by the first to ask.
  static func shared(_ release: Release) async throws -> Machine {
    try await machines.withLock { machines in
      if let task = machines[release] { return task }
      let task = Task { try await Machine(booting: release, polkit: true) }
      machines[release] = task
      return task
    }.value
  }

  private static let machines = Mutex<[Release: Task<Machine, any Error>]>([:])
  private static let boots = Atomic<Int>(0)

  /// A new one.
  init(booting release: Release, polkit: Bool) async throws {
    let number = Self.boots.add(1, ordering: .relaxed).newValue
    var environment = ProcessInfo.processInfo.environment
    environment["SUITE"] = release.rawValue
    environment["NAME"] = "test-\(release.rawValue)-\(getpid())-\(number)"
    environment["POLKIT"] = polkit ? "yes" : "no"
    environment["PRODUCTS"] = Package.products
    let script = Package.root + "/Tests/Machine/machine"
    let holder = try ChildProcess(
      "/bin/bash", [script, "hold"], environment: environment, hasInput: true)
    Self.endAtExit(holder)
    // From nothing it takes half a minute; more when the packages come slowly. What the script says is on standard error.
    let line = try await offPool { try holder.expect("leader ", within: 300) }
    // "leader 4711 share /somewhere"
    let words = line.split(separator: " ", maxSplits: 3)
    leader = String(words[1])
    share = String(words[3])
    self.release = release
    self.holder = holder
  }

  /// Ends it now. What is left to do when a test had it for itself.
  func end() async throws {
    holder.closeInput()
    let holder = holder
    try await offPool { try holder.waitUntilEnded() }
  }

  /// The pipes close by themselves, but then nobody waits for the end of what they hold.
  private static func endAtExit(_ holder: ChildProcess) {
    let isFirst = holders.withLock {
      $0.append(holder)
      return $0.count == 1
    }
    guard isFirst else { return }
    atexit {
      let holders = Machine.holders.withLock { $0 }
      for holder in holders { holder.closeInput() }
      for holder in holders { _ = try? holder.wait() }
    }
  }

  private static let holders = Mutex<[ChildProcess]>([])

  // MARK: Commands

  /// Starts a command as root, as `machine exec` does; it takes a few milliseconds.
  private func spawn(_ command: [String], hasInput: Bool = false) throws -> ChildProcess {
    // What it leaves running has nothing of ours open: we would wait for its end.
    let script = "exec 9>&-; echo $$ >/sys/fs/cgroup/init.scope/cgroup.procs; exec \"$@\""
    return try ChildProcess(
      "/usr/bin/env",
      [
        "nsenter", "--target", leader, "--all", "--root", "--wd", "env", "-i",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
        "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=",
        "sh", "-c", script, "sh",
      ] + command, stderrToStdout: true, hasInput: hasInput)
  }

  /// Runs a command to its end, or kills it at the limit and throws.
  func run(_ command: [String], within limit: Duration) async throws -> Output {
    let seconds = max(1, limit.components.seconds)
    let began = ContinuousClock.now
    let output = try await offPool { [self] in
      let child = try spawn(["timeout", "--signal=KILL", "\(seconds)"] + command)
      let exit = try child.wait(within: Double(seconds + 5))
      return Output(exit: exit, text: child.output.joined(separator: "\n"))
    }
    guard
      ![.status(137), .signal(SIGKILL)].contains(output.exit) || ContinuousClock.now - began < limit
    else {
      throw TestFailure("not over after \(limit): \(command.joined(separator: " "))")
    }
    return output
  }

  /// The lines that a shell script prints, one after another, until `body` has a result for one of them.
  ///
  /// The script is ended with its children when that is so, or at the limit; then the result is `nil`.
  func firstLine<T: Sendable>(
    of script: String, _ arguments: [String], within limit: Duration,
    where body: @escaping @Sendable (String) throws -> T?
  ) async throws -> T? {
    // In the machine nobody else would end it: killing nsenter here kills nothing there.
    let guarded = #"setsid sh -c "$0" sh "$@" </dev/null 2>/dev/null & cat >/dev/null; kill -- -$!"#
    return try await offPool { [self] in
      let child = try spawn(["sh", "-c", guarded, script] + arguments, hasInput: true)
      defer {
        child.closeInput()
        _ = try? child.wait()
      }
      let deadline = now() + limit / .seconds(1)
      while let line = try? child.line(within: deadline - now(), where: { _ in true }) {
        if let result = try body(line) { return result }
      }
      return nil
    }
  }
}

/// What a command has said, without the last newline, and how it has ended.
struct Output: Sendable {
  var exit: ChildProcess.Exit
  var text: String
  var isSuccess: Bool { exit == .status(0) }
}

/// Runs what blocks on a thread of its own, so that tests waiting for facts leave Swift's threads free.
private func offPool<T: Sendable>(
  _ work: @escaping @Sendable () throws -> T
) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result(catching: work)) }
    thread.start()
  }
}
