// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Functions that start child processes with no signal blocked or ignored, so that they can be stopped.
///
/// A child inherits the signal mask of the thread that starts it, and keeps it through exec(3). Dispatch and Swift's
/// concurrency block SIGTERM, SIGHUP, SIGINT and most other signals in their threads. So a child that is started from
/// an `async` function does not receive SIGTERM from `kill` or systemd, and runs until SIGKILL. A child also ignores
/// the signals that this process ignores. A child of ``spawn(_:_:environment:descriptors:)`` begins with no signal
/// blocked or ignored.
public enum ChildProcess {
  /// Starts a program with no signal blocked or ignored.
  ///
  /// ```swift
  /// let pid = try ChildProcess.spawn("/usr/bin/rsync", ["-a", source, target])
  /// ```
  ///
  /// The child inherits standard input, output and error and all descriptors that are not close-on-exec. The caller
  /// must wait for it with waitpid(2).
  ///
  /// - Parameters:
  ///   - path: The program's path; `PATH` is not searched.
  ///   - arguments: The arguments after the program's name, which is added automatically. Default: none.
  ///   - environment: All variables of the child. Default `nil`: ``ServiceEnvironment/childEnvironment(adding:)``.
  ///   - descriptors: Descriptors of this process by their numbers in the child, as in `[1: log.rawValue]`. They may be
  ///     close-on-exec, and may exchange numbers.
  /// - Returns: The child's process ID.
  /// - Throws: `invalidArgument` for a NUL byte or a variable name with '='; `system` when the program can't be started
  ///   (ENOENT, EACCES and so on).
  public static func spawn(
    _ path: String, _ arguments: [String] = [], environment: [String: String]? = nil,
    descriptors: [Int32: Int32] = [:]
  ) throws(SystemdError) -> Int32 {
    let variables = try lines(environment ?? ServiceEnvironment.current.childEnvironment())
    for text in [path] + arguments where text.utf8.contains(0) {
      throw .invalidArgument("An argument for \(path) has a NUL byte in it: \"\(text)\".")
    }
    let purpose = "start \(path)"
    let copies = try duplicates(descriptors, purpose)
    defer { for (copy, _) in copies { close(copy) } }
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    guard posix_spawn_file_actions_init(&actions) == 0 else {
      throw .system(purpose, errno: ENOMEM)
    }
    defer { posix_spawn_file_actions_destroy(&actions) }
    guard posix_spawnattr_init(&attributes) == 0 else { throw .system(purpose, errno: ENOMEM) }
    defer { posix_spawnattr_destroy(&attributes) }
    for (copy, target) in copies {
      let failure = posix_spawn_file_actions_adddup2(&actions, copy, target)
      guard failure == 0 else { throw .system(purpose, errno: failure) }
    }
    setSignals(&attributes)
    var pid: pid_t = 0
    let failure = withCStrings([path] + arguments) { arguments in
      withCStrings(variables) { variables in
        posix_spawn(&pid, path, &actions, &attributes, arguments, variables)
      }
    }
    guard failure == 0 else { throw .system(purpose, errno: failure) }
    return pid
  }

  /// Runs `body` with no signal blocked in this thread, for other ways to start a child, such as Foundation's
  /// `Process`.
  ///
  /// A child that `body` starts still ignores the signals that this process ignores. Signals with a handler may be
  /// handled in this thread meanwhile.
  ///
  /// - Throws: The error that `body` throws.
  public static func withUnblockedSignals<T, E: Error>(_ body: () throws(E) -> T) throws(E) -> T {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body()
  }

  // MARK: Parts of a start

  private static func setSignals(_ attributes: inout posix_spawnattr_t) {
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    // These can't fail with valid sets and flags.
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
  }

  /// Duplicates descriptors to numbers above all targets, so that no dup2 in the child overwrites one that a later dup2
  /// needs.
  private static func duplicates(
    _ descriptors: [Int32: Int32], _ purpose: String
  ) throws(SystemdError) -> [(copy: Int32, target: Int32)] {
    var copies: [(copy: Int32, target: Int32)] = []
    let (next, overflow) = (descriptors.keys.max() ?? 2).addingReportingOverflow(1)
    let lowest = overflow ? Int32.max : max(3, next)
    for (target, source) in descriptors.sorted(by: { $0.key < $1.key }) {
      let copy = target < 0 ? -1 : clinux_duplicate(source, lowest)
      guard copy >= 0 else {
        let code = target < 0 ? EBADF : clinux_errno()
        for (copy, _) in copies { close(copy) }
        throw .system("\(purpose) with descriptor \(source) as \(target)", errno: code)
      }
      copies.append((copy, target))
    }
    return copies
  }

  private static func lines(_ environment: [String: String]) throws(SystemdError) -> [String] {
    var lines: [String] = []
    for (name, value) in environment.sorted(by: { $0.key < $1.key }) {
      guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "=")), !name.utf8.contains(0),
        !value.utf8.contains(0)
      else {
        throw .invalidArgument(
          "\"\(name)\" can't be a variable: a name without '=', and no NUL bytes.")
      }
      lines.append("\(name)=\(value)")
    }
    return lines
  }

  /// Calls `body` with an array of C strings that ends with NULL, valid during the call.
  private static func withCStrings(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Int32
  ) -> Int32 {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    // This fails only without memory: the list must not end early then.
    guard copies.allSatisfy({ $0 != nil }) else { return ENOMEM }
    return body(copies + [nil])
  }
}
