// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// Thousands of signals from two senders at once: none that matters is lost, and observers see only what
/// makes sense. Signals pending together come in number order, so nothing is asked of the storm's own order.
final class StormTests: XCTestCase {
  /// A daemon in the foreground, whose hooks take that long each.
  private func started(hooksTake microseconds: Int) throws -> ChildProcess {
    let daemon = try ChildProcess(built("ProbeDaemon"), ["storm", "\(microseconds)"])
    try daemon.expect("actor foreground")
    return daemon
  }

  /// After 10,000 signals the last one of each kind counts, in each of their six orders (usually in two).
  func testAfterAStormTheLastSignalsCount() throws {
    try withSeed { random in
      let daemon = try started(hooksTake: 5000)
      let orders = permutations(of: [SIGUSR1, SIGUSR2, SIGHUP])
      for last in orders.shuffled(using: &random).prefix(LongTests.count(2, long: orders.count)) {
        let senders = try (0..<2).map { _ in
          try ChildProcess(
            built("ProbeDaemon"), ["send", "\(daemon.pid)", "5000", "\(random.next())"])
        }
        let hangUps = try senders.map { sender in
          let line = try sender.expect("last SIGHUP at ")
          XCTAssertEqual(try sender.wait(), .status(0))
          return try XCTUnwrap(UInt64(line.dropFirst("last SIGHUP at ".count)))
        }
        // No further signal wakes the daemon here: this one must not need it.
        try daemon.expectReload(notBefore: hangUps.max()!)

        // Taken in is not delivered: what comes next finds the daemon at work, as a rule.
        try daemon.waitUntilHandled()
        var hungUp: UInt64 = 0
        for signal in last {
          if signal == SIGHUP { hungUp = nanoseconds() }
          daemon.send(signal)
          try daemon.waitUntilHandled()
        }
        try daemon.expectReload(notBefore: hungUp)
        let isForeground = last.firstIndex(of: SIGUSR1)! < last.firstIndex(of: SIGUSR2)!
        XCTAssertEqual(
          try daemon.stateWhenAllIsTakenIn(), isForeground ? "foreground" : "background", "\(last)")
      }
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0))
      try checkHooks(of: daemon)
    }
  }

  /// Bursts that end with a SIGHUP, and nothing after it that could wake the daemon.
  func testEveryBurstEndsInAReload() throws {
    try withSeed { random in
      let daemon = try started(hooksTake: 20)
      for _ in 1...LongTests.count(200, long: 1000) {
        var hungUp: UInt64 = 0
        for signal in [SIGUSR1, SIGHUP, SIGUSR2, SIGHUP].shuffled(using: &random) + [SIGHUP] {
          // The handler and the thread that it wakes are met at every point of their work.
          let next = nanoseconds() + UInt64.random(in: 0...50_000, using: &random)
          while nanoseconds() < next {}
          hungUp = nanoseconds()
          daemon.send(signal)
        }
        try daemon.expectReload(notBefore: hungUp)
      }
      daemon.send(SIGTERM)
      XCTAssertEqual(try daemon.wait(), .status(0))
      try checkHooks(of: daemon)
    }
  }

  func testSIGTERMInTheMidstOfAStormIsObeyed() throws {
    try withSeed { random in
      for _ in 1...LongTests.count(2, long: 5) {
        let daemon = try started(hooksTake: 300)
        try withEndlessStorm(on: daemon, &random) {
          // The storm is felt.
          for _ in 1...3 { try daemon.expect("class background") }
          daemon.send(SIGTERM)
          try daemon.waitUntilEnded(within: 15)
        }
        XCTAssertEqual(try daemon.wait(), .status(0))
        XCTAssertEqual(daemon.output.last, "exit 0")
        try checkHooks(of: daemon)
      }
    }
  }

  // MARK: What observers see

  /// A line of the daemon's: `class save 123 456`.
  private struct Call {
    let observer: Substring
    let hook: Substring
    let began: UInt64
    let ended: UInt64

    init?(_ line: String) {
      let words = line.split(separator: " ")
      guard words.count == 4, let began = UInt64(words[2]), let ended = UInt64(words[3]) else {
        return nil
      }
      (observer, hook, self.began, self.ended) = (words[0], words[1], began, ended)
    }
  }

  /// From the launch to the end: one hook at a time; background and foreground in turn; a save after each
  /// background and before each reload; at the end a save, and last the termination.
  private func checkHooks(
    of daemon: ChildProcess, file: StaticString = #filePath, line: UInt = #line
  ) throws {
    let calls = daemon.output.compactMap { Call($0) }
    for (call, next) in zip(calls, calls.dropFirst()) where next.began < call.ended {
      XCTFail("\(next) began in \(call)", file: file, line: line)
    }
    for observer in ["class", "actor"] {
      let hooks = calls.filter { $0.observer == observer }.map(\.hook)
      let transitions = hooks.filter { ["foreground", "background"].contains($0) }
      for (index, hook) in transitions.enumerated() {
        let expected = index.isMultiple(of: 2) ? "foreground" : "background"
        XCTAssertEqual(String(hook), expected, "\(observer), \(index)", file: file, line: line)
      }
      XCTAssertEqual(transitions.last, "background", file: file, line: line)
      for (hook, next) in zip(hooks, hooks.dropFirst()) {
        if hook == "background" {
          XCTAssertEqual(next, "save", "after a background", file: file, line: line)
        }
        if next == "reload" {
          XCTAssertEqual(hook, "save", "before a reload", file: file, line: line)
        }
      }
      XCTAssertEqual(hooks.suffix(2), ["save", "terminate"], file: file, line: line)
    }
  }
}

// MARK: - Facts about a storm

extension ChildProcess {
  /// The signal that ProbeDaemon's storm answers with its state.
  private var marker: Int32 { __libc_current_sigrtmin() }

  /// Waits for a reload that began after that time.
  fileprivate func expectReload(
    notBefore time: UInt64, file: StaticString = #filePath, line: UInt = #line
  ) throws {
    // The class is the first that is asked to reload.
    let prefix = "class reload "
    try self.line(file: file, line: line) {
      guard $0.hasPrefix(prefix) else { return false }
      let began = $0.dropFirst(prefix.count).prefix { $0 != " " }
      return UInt64(began).map { $0 >= time } ?? false
    }
  }

  /// The daemon's state when everything that was sent before has been delivered.
  ///
  /// All handlers have run, so the marker, sent now, is the youngest signal on record; and what is asked for
  /// is delivered in the order in which it was recorded.
  fileprivate func stateWhenAllIsTakenIn(
    file: StaticString = #filePath, line: UInt = #line
  ) throws -> String {
    try waitUntilHandled()
    send(marker)
    let prefix = "taken in: "
    return String(try expect(prefix, file: file, line: line).dropFirst(prefix.count))
  }

  /// Waits until the handlers of all signals that were sent before have returned; none may be sent meanwhile.
  ///
  /// First until no signal is pending: each has then been handed to some thread. A thread that was handed one
  /// runs until the handler, which never waits, has returned. So a thread seen asleep after that has none.
  func waitUntilHandled() throws {
    let deadline = now() + 20
    func threads() throws -> [ThreadStatus] {
      guard now() < deadline else { throw TestFailure("signals are pending or being handled") }
      sched_yield()
      return try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").compactMap {
        ThreadStatus(process: pid, thread: $0)
      }
    }
    var awake: Set<String>
    repeat {
      let all = try threads()
      awake = all.contains { $0.hasPending } ? [] : Set(all.map(\.id))
    } while awake.isEmpty
    while !awake.isEmpty { awake.formIntersection(try threads().filter { !$0.isAsleep }.map(\.id)) }
  }
}

/// What /proc says of a thread; see proc_pid_status(5).
private struct ThreadStatus {
  let id: String
  private(set) var isAsleep = false
  /// Signals, of the thread's own or of the whole process.
  private(set) var hasPending = false

  /// `nil` when there is no such thread any more.
  init?(process: pid_t, thread: String) {
    guard
      let text = try? String(
        contentsOfFile: "/proc/\(process)/task/\(thread)/status", encoding: .utf8)
    else { return nil }
    id = thread
    for line in text.split(separator: "\n") {
      let words = line.split { $0 == "\t" || $0 == " " }
      guard words.count > 1 else { continue }
      switch words[0] {
      case "State:": isAsleep = words[1] == "S"
      case "SigPnd:", "ShdPnd:": if UInt64(words[1], radix: 16) != 0 { hasPending = true }
      default: break
      }
    }
  }
}

/// Runs `body` while two senders send SIGUSR1, SIGUSR2 and SIGHUP to the daemon without end; from well before
/// until after, and until `wait` is called for the daemon the senders have someone to send to.
func withEndlessStorm(
  on daemon: ChildProcess, _ random: inout SeededGenerator, _ body: () throws -> Void
) throws {
  let senders = try (0..<2).map { _ in
    try ChildProcess(built("ProbeDaemon"), ["send", "\(daemon.pid)", "0", "\(random.next())"])
  }
  for sender in senders { try sender.expect("under way") }
  try body()
  for sender in senders {
    sender.send(SIGTERM)
    XCTAssertEqual(try sender.wait(), .signal(SIGTERM), "it was still sending")
  }
}

// MARK: - Chance

extension XCTestCase {
  /// Runs `body` with random numbers, and names their seed when it fails; the variable SEED repeats it.
  func withSeed(
    file: StaticString = #filePath, line: UInt = #line,
    _ body: (inout SeededGenerator) throws -> Void
  ) rethrows {
    let given = getenv("SEED").flatMap { UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 0 ... .max)
    let failures = testRun?.totalFailureCount ?? 0
    var isThrowing = true
    defer {
      if isThrowing || testRun?.totalFailureCount != failures {
        XCTFail("the seed was \(seed); SEED=\(seed) repeats it", file: file, line: line)
      }
    }
    var random = SeededGenerator(seed: seed)
    try body(&random)
    isThrowing = false
  }
}

private func permutations(of all: [Int32]) -> [[Int32]] {
  guard !all.isEmpty else { return [[]] }
  return all.flatMap { first in permutations(of: all.filter { $0 != first }).map { [first] + $0 } }
}

/// Of `CLOCK_MONOTONIC`, which all processes share.
private func nanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
