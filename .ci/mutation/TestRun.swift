// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A test process in a process group of its own, until it has failed, ended or taken too long.
final class TestRun {
  enum Verdict { case passed, failed, timedOut }

  let process: pid_t
  let output: Int32
  private let deadline: ContinuousClock.Instant
  /// What was printed, of which the end is looked through for a failure.
  private(set) var printed: [UInt8] = []
  private let folder: String

  init(_ program: String, _ arguments: [String], _ variables: [String: String], limit: Duration) {
    folder = NSTemporaryDirectory() + "run-\(UUID().uuidString)"
    try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var environment = ProcessInfo.processInfo.environment
    environment.merge(variables) { $1 }
    environment["TMPDIR"] = folder
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { fatalError("No pipe: errno \(errno)") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    var settings = environment.map { strdup("\($0)=\($1)") } + [nil]
    var started: pid_t = 0
    let result = posix_spawn(&started, program, &actions, &attributes, &words, &settings)
    guard result == 0 else { fatalError("\(program) cannot be started: errno \(result)") }
    for word in words + settings { free(word) }
    posix_spawn_file_actions_destroy(&actions)
    posix_spawnattr_destroy(&attributes)
    close(ends[1])
    process = started
    output = ends[0]
    deadline = .now + limit
  }

  /// What is known by now; `nil`: nothing yet. After a verdict the process and its children are gone.
  func verdict(canRead: Bool) -> Verdict? {
    if canRead {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = read(output, &buffer, buffer.count)
      if count > 0 {
        let seen = max(0, printed.count - 64)
        printed += buffer[..<count]
        let news = String(decoding: printed[seen...], as: UTF8.self)
        if news.contains("✘") || news.contains("recorded an issue") { return end(.failed) }
      } else {
        return end(nil)
      }
    }
    return ContinuousClock.now < deadline ? nil : end(.timedOut)
  }

  /// - Parameter verdict: `nil`: what its status says.
  private func end(_ verdict: Verdict?) -> Verdict {
    if verdict != nil { kill(-process, SIGKILL) }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    kill(-process, SIGKILL)
    close(output)
    unmountAll()
    try? FileManager.default.removeItem(atPath: folder)
    return verdict ?? (status == 0 ? .passed : .failed)
  }

  /// A test that was killed leaves the disks that it had mounted.
  private func unmountAll() {
    let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
    for line in mounts.split(separator: "\n").reversed() {
      let words = line.split(separator: " ")
      if words.count > 1, words[1].hasPrefix(folder) {
        _ = umount2(String(words[1]), Int32(MNT_DETACH))
      }
    }
  }

  /// Waits until one of several has printed something or a moment has passed; which have something to read.
  static func wait(_ runs: [TestRun]) -> [Bool] {
    var polled = runs.map { pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0) }
    poll(&polled, nfds_t(polled.count), 200)
    return polled.map { $0.revents != 0 }
  }
}
