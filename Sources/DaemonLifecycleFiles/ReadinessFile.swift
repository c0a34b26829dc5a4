// SPDX-License-Identifier: Apache-2.0
import CLinux
public import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// The readiness file: removed at the start, made by a rename, and removed when the daemon stops being ready.
///
/// It makes a few system calls on a local file system, which do not block. Failed calls are tried again until they
/// succeed: a daemon that serves must not look unready because the disk was full for a moment.
final class ReadinessFile: LifecyclePart {
  private struct State {
    /// The number of the newest change.
    var last: UInt64 = 0
    var isReady = false
    /// Whether the file was made, and not removed since.
    var isMade = false
    /// Whether a dead process may have left the file.
    var isLeft = true
    /// The last problem, so that it is logged once.
    var lastProblem: String?
    var backoff = Backoff(longest: .seconds(2))
  }

  private let path: String
  /// The directory of the file; `nil` where the path is not the absolute path of a file, and nothing can be done.
  private let directory: String?
  /// In the same directory, so that it can be renamed.
  private let temporaryPath: String
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter warn: Receives a sentence about a problem; called without a lock.
  init(_ path: String, warn: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.warn = warn
    // By bytes, since a slash and a combining mark after it are one character.
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = path[(slash.map(path.utf8.index(after:)) ?? path.startIndex)...]
    let parent = String(path[..<name.startIndex])
    let isFile =
      path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0)
      && !["", ".", ".."].contains(name)
    directory = isFile ? parent : nil
    temporaryPath = "\(parent).\(name).new"
  }

  // MARK: Changes

  var showsReadiness: Bool { true }

  /// Removes the file of a process that was killed: before the launch, so that problems are logged at the start.
  @discardableResult func open() -> MonotonicTime? {
    guard let directory else {
      warn(
        "The readiness file's path \"\(path)\" is not the absolute path of a file: probes will find none."
      )
      return nil
    }
    let problem = state.withLock { state -> String? in
      if state.isMade { return nil }
      let canMake = access(directory, W_OK | X_OK) == 0
      let problem = canMake ? remove() : failure("make", clinux_errno())
      state.isLeft = canMake && problem != nil
      defer { state.lastProblem = problem }
      return problem == state.lastProblem ? nil : problem
    }
    if let problem { warn(problem) }
    return nil
  }

  @discardableResult func show(_ isReady: Bool, number: UInt64) -> MonotonicTime? {
    attempt { state in
      guard number > state.last else { return false }
      state.last = number
      let isNew = isReady != state.isReady
      state.isReady = isReady
      // A removal that failed is tried again with each change.
      return isNew || !isReady
    }
  }

  /// Makes the file again if somebody else has removed it.
  func check() -> MonotonicTime? {
    attempt { state in
      guard state.isMade, access(path, F_OK) != 0, clinux_errno() == ENOENT else { return false }
      state.isMade = false
      return true
    }
  }

  func wake(_: (SourceInput) -> Void) -> MonotonicTime? {
    attempt { state in
      state.backoff.grow()
      return true
    }
  }

  /// Makes or removes the file if `isDue` returns true and it is not as it should be, and logs a new problem. Returns
  /// when that must be tried again.
  private func attempt(if isDue: (inout State) -> Bool) -> MonotonicTime? {
    guard directory != nil else { return nil }
    let (retry, newProblem): (MonotonicTime?, String?) = state.withLock { state in
      guard isDue(&state), state.isReady ? !state.isMade : state.isMade || state.isLeft else {
        return (nil, nil)
      }
      let problem = state.isReady ? make() : remove()
      if problem == nil { (state.isMade, state.isLeft) = (state.isReady, false) }
      let isNew = problem != state.lastProblem
      state.lastProblem = problem
      guard problem != nil else {
        state.backoff.reset()
        return (nil, nil)
      }
      return (state.backoff.nextAttempt, isNew ? problem : nil)
    }
    if let newProblem { warn(newProblem) }
    return retry
  }

  // MARK: The file

  /// Writes it under another name, so that it appears whole. Returns a problem.
  private func make() -> String? {
    unlink(temporaryPath)
    // With O_EXCL no link is followed, and no existing file is opened.
    let file = clinux_open_at(AT_FDCWD, temporaryPath, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard file >= 0 else { return failure("make", clinux_errno()) }
    let text = Array("ready\npid \(getpid())\nsince \(WallClock.now())\n".utf8)
    let count = clinux_write(file, text, text.count)
    var error = count == text.count ? 0 : count < 0 ? clinux_errno() : ENOSPC
    CLinux.close(file)
    if error == 0, rename(temporaryPath, path) != 0 { error = clinux_errno() }
    guard error != 0 else { return nil }
    unlink(temporaryPath)
    return failure("make", error)
  }

  private func remove() -> String? {
    if unlink(path) == 0 { return nil }
    let error = clinux_errno()
    // On a read-only file system unlink(2) fails even if there is no file.
    return access(path, F_OK) != 0 && clinux_errno() == ENOENT ? nil : failure("remove", error)
  }

  private func failure(_ purpose: String, _ error: Int32) -> String {
    "The readiness file \(path): could not \(purpose) it: \(String(cString: strerror(error))) (errno \(error))."
  }
}

extension LifecycleInterface {
  /// A file that exists exactly while the daemon is ready: launched, in the foreground, and not about to leave it.
  ///
  /// It is for a container's readiness probe, or a load balancer's health check:
  ///
  /// ```swift
  /// configuration.interfaces.append(.readinessFile("/run/mydaemon/ready"))
  /// // readinessProbe: { exec: { command: [test, -e, /run/mydaemon/ready] } }
  /// ```
  ///
  /// It is created when every hook of the launch has ended, and whenever the daemon returns to the foreground. It is
  /// removed as soon as a pause, a sleep or a termination is requested: before any hook is called, even while a hook of
  /// another delivery still runs, and at the beginning of `stopDelay`.
  ///
  /// It is created atomically, with mode 0600. A killed process leaves it behind; the next start removes the file at
  /// the path before the set-up, so every subject needs its own file. Failures are logged, and tried again.
  ///
  /// - Parameter path: Its absolute path. The directory must exist, be writable for the daemon, and be on a local file
  ///   system, such as an `emptyDir` or `/run`: the threads that deliver notifications create and remove the file, and
  ///   must not wait.
  public static func readinessFile(_ path: String) -> Self {
    Self("readiness file", of: path, .local) { wiring in
      wiring.parts.append(ReadinessFile(path, warn: wiring.warn))
    }
  }
}
