// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Starts child processes that can be stopped.
///
/// A child keeps the signal mask of the thread that starts it, through exec(3). Dispatch and Swift's concurrency block
/// SIGTERM, SIGHUP, SIGINT and most others in their threads: so a child started from an `async` function does not
/// hear `kill`, nor systemd's SIGTERM, and lives until SIGKILL. What this process ignores its child ignores too.
/// A child of ``spawn(_:_:environment:descriptors:)`` begins with nothing blocked and nothing ignored.
public enum ChildProcess {
  /// Starts a program with no signal blocked and none ignored.
  ///
  /// ```swift
  /// let pid = try ChildProcess.spawn("/usr/bin/rsync", ["-a", source, target])
  /// ```
  ///
  /// The child has this process's standard input, output and error and whatever else is not close-on-exec; nothing is
  /// closed. It is the caller's to wait for it (waitpid(2)).
  ///
  /// - Parameters:
  ///   - path: The program; it is not searched in `PATH`.
  ///   - arguments: Without the name of the program, which comes first by itself.
  ///   - environment: All variables of the child; by default those of this process without what is meant for it alone.
  ///   - descriptors: Descriptors of this process by their number in the child, as `[1: log.rawValue]`. They may be
  ///     close-on-exec, and swap numbers.
  /// - Returns: The child's process id.
  /// - Throws: `invalidArgument` for a NUL byte or a name of a variable with '='; `system` when it can't be started:
  ///   ENOENT, EACCES and so on.
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

  /// Runs `body` with no signal blocked in this thread, for other ways to start a child, as Foundation's `Process`.
  ///
  /// It can't undo what this process ignores: a child of `body` ignores it too. Signals whose handler is yours may be
  /// handled in this thread meanwhile.
  ///
  /// - Throws: What `body` throws.
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

  /// Duplicates above all targets, so that no dup2 in the child overwrites what a later one needs.
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

  /// An array of C strings that ends with NULL, valid during `body`.
  private static func withCStrings(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Int32
  ) -> Int32 {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    // Only memory can be lacking: the list must not end early then.
    guard copies.allSatisfy({ $0 != nil }) else { return ENOMEM }
    return body(copies + [nil])
  }
}
