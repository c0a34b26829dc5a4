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
  private let holder: Child

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
    let holder = try Child(
      ["bash", script, "hold"], environment: environment, ownSession: true, errorsToOurs: true)
    Self.endAtExit(holder)
    // From nothing it takes half a minute; more when the packages come slowly.
    let line = try await offPool { holder.line(until: .now + .seconds(300)) }
    // "leader 4711 share /somewhere"
    guard let words = line?.split(separator: " ", maxSplits: 3), words.count == 4 else {
      throw MachineFailure("\(release) did not boot; what the script says is on standard error.")
    }
    leader = String(words[1])
    share = String(words[3])
    self.release = release
    self.holder = holder
  }

  /// Ends it now. What is left to do when a test had it for itself.
  func end() async throws {
    holder.closeInput()
    let holder = holder
    _ = try await offPool { holder.line(until: .now + .seconds(10)) }
  }

  /// The pipes close by themselves, but then nobody waits for the end of what they hold.
  private static func endAtExit(_ holder: Child) {
    let isFirst = holders.withLock {
      $0.append(holder)
      return $0.count == 1
    }
    guard isFirst else { return }
    atexit {
      let holders = Machine.holders.withLock { $0 }
      for holder in holders { holder.closeInput() }
      for holder in holders { holder.reap() }
    }
  }

  private static let holders = Mutex<[Child]>([])

  // MARK: Commands

  /// Starts a command as root, as `machine exec` does; it takes a few milliseconds.
  func spawn(_ command: [String]) throws -> Child {
    try Child(
      [
        "nsenter", "--target", leader, "--all", "--root", "--wd", "env", "-i",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
        "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=",
        "sh", "-c", "echo $$ >/sys/fs/cgroup/init.scope/cgroup.procs; exec \"$@\"", "sh",
      ] + command)
  }

  /// Runs a command to its end, or kills it at the limit and throws.
  func run(_ command: [String], input: String = "", within limit: Duration) async throws -> Output {
    let seconds = String(max(1, limit.components.seconds))
    let began = ContinuousClock.now
    let output = try await offPool { [self] in
      try spawn(["timeout", "--signal=KILL", seconds] + command)
        .finish(input: Array(input.utf8), until: .now + limit + .seconds(5))
    }
    guard let output, output.status != 137 || ContinuousClock.now - began < limit else {
      throw MachineFailure("not over after \(limit): \(command.joined(separator: " "))")
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
    // `guarded` ends it: in the machine nobody else would end it: killing nsenter here kills nothing there.
    let guarded = #"setsid sh -c "$0" sh "$@" </dev/null & cat >/dev/null; kill -- -$!"#
    return try await offPool { [self] in
      let child = try spawn(["sh", "-c", guarded, script] + arguments)
      defer {
        child.closeInput()
        child.reap()
      }
      let deadline = ContinuousClock.now + limit
      while let line = child.line(until: deadline) {
        if let result = try body(line) { return result }
      }
      return nil
    }
  }
}
