// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycleState

/// Real children, killed at random moments of saving.
@Suite("State: SIGKILL", .serialized) struct KillTests {
  /// How many: what STATE_KILLS says, or few.
  private static let kills = getenv("STATE_KILLS").flatMap { Int(String(cString: $0)) } ?? 250

  private struct Count {
    var kills = 0
    var saves: UInt64 = 0
    /// Killed so that a part of a new file was left.
    var inMidSave = 0
    var afterLast = 0
    var problems: [String] = []
  }

  @Test func nothingIsCorruptAndNothingIsOlderThanTheLastSaveThatReturned() async throws {
    let total = Self.kills
    let counts = await withTaskGroup(of: Count.self) { group in
      for lane in 0..<2 {
        group.addTask { await Self.lane(UInt64(lane), total / 2) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    var all = Count()
    for count in counts {
      all.kills += count.kills
      all.saves += count.saves
      all.inMidSave += count.inMidSave
      all.afterLast += count.afterLast
      all.problems += count.problems
    }
    print(
      "\(all.kills) children killed after \(all.saves) saves: \(all.inMidSave) left a part of a file, "
        + "\(all.afterLast) a save that had not returned, \(all.problems.count) anything wrong.")
    #expect(all.problems.isEmpty, "\(all.problems.prefix(5))")
    #expect(all.kills == total / 2 * 2 && all.inMidSave > 0)
  }

  /// One after another in one directory, each going on where the one before was killed.
  private static func lane(_ seed: UInt64, _ kills: Int) async -> Count {
    var count = Count()
    var random = SeededGenerator(seed: seed)
    do {
      let directory = try Folder()
      var last: UInt64 = 0
      for _ in 0..<kills {
        // It blocks its thread, of which other tests need some.
        await Task.yield()
        let saved = try killed(directory.path, &random)
        if directory.size(of: ".state.new") > 0 { count.inMidSave += 1 }
        let store = try StateStore(directory: directory.path)
        let found = try store.load()
        let number = try found.map { try parse($0.bytes) } ?? 0
        let atLeast = saved ?? last
        count.saves += number - min(last, number)
        if number > atLeast { count.afterLast += 1 }
        // At most the save that was under way.
        if number < atLeast || number > atLeast + 1 {
          count.problems.append("\(number) after \(atLeast) was saved")
        }
        if let broken = found?.broken, !broken.isEmpty { count.problems.append("\(broken)") }
        if directory.size(of: ".state.new") > 0 { count.problems.append("not removed") }
        last = number
        count.kills += 1
      }
    } catch { count.problems.append("\(error)") }
    return count
  }

  /// Starts a child, lets it save for a moment, kills it: the last save that had returned.
  private static func killed(_ path: String, _ random: inout SeededGenerator) throws -> UInt64? {
    var ends: [Int32] = [0, 0]
    guard clinux_pipe(&ends) == 0 else { throw TestFailure("pipe") }
    defer { close(ends[0]) }
    let pid = try spawn(path, output: ends[1])
    close(ends[1])
    // The moment is the point, not a wait for something: up to a few saves after the first, or before it.
    var saved: UInt64?
    if random.chance(90) { saved = next(ends[0]) }
    var pause = timespec(tv_sec: 0, tv_nsec: random.below(6_000_000))
    nanosleep(&pause, nil)
    kill(pid, SIGKILL)
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, clinux_errno() == EINTR {}
    guard status & 0x7f == SIGKILL else {
      throw TestFailure("the child ended by itself: \(status)")
    }
    while let more = next(ends[0]) { saved = more }
    return saved
  }

  private static func next(_ pipe: Int32) -> UInt64? {
    var number: UInt64 = 0
    let count = withUnsafeMutableBytes(of: &number) { read(pipe, $0.baseAddress, 8) }
    return count == 8 ? number : nil
  }

  private static func spawn(_ path: String, output: Int32) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var pid: pid_t = 0
    let argv = [strdup(probe), strdup(path), nil]
    defer { for pointer in argv { free(pointer) } }
    let failure = posix_spawn(&pid, probe, &actions, nil, argv, clinux_environment())
    guard failure == 0 else { throw TestFailure("spawn \(probe): \(failure)") }
    return pid
  }

  private static let probe = built("ProbeState")

  /// As the probe makes them: a number, then bytes that follow from it.
  private static func parse(_ bytes: [UInt8]) throws -> UInt64 {
    let line = String(decoding: bytes.prefix { $0 != 0x0a }, as: UTF8.self)
    guard let number = UInt64(line) else { throw TestFailure("no number: \(bytes.prefix(20))") }
    let rest = bytes.dropFirst(line.utf8.count + 1)
    guard rest.count == Int(number &* 2_654_435_761 % 20_000) else {
      throw TestFailure("\(rest.count) bytes in \(number)")
    }
    let isRight = rest.withUnsafeBufferPointer { rest in
      rest.indices.allSatisfy { rest[$0] == UInt8(truncatingIfNeeded: UInt64($0) &* 31 &+ number) }
    }
    guard isRight else { throw TestFailure("other bytes in \(number)") }
    return number
  }
}
