// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring
import Synchronization

/// The values that have bounds, by the names that these have in the file.
final class Counts {
  /// Where the gate script has put things: `release`, `allocations.so` and `wakeup.so`.
  let directory: String
  private static let observers = 100.0
  private let idle: Idle
  private let workload: String
  /// What a daemon that is only started takes.
  private var started: Double?

  init(directory: String) throws {
    self.directory = directory
    // Older releases of valgrind give up on the compiler's debugging information.
    workload = "\(directory)/workload"
    try Tool.run("strip", "-g", "-o", workload, "\(directory)/release/Workload")
    idle = Idle(directory: directory)
  }

  func value(of name: String) throws -> Double {
    let parts = name.split(separator: ".").map(String.init)
    switch (parts.first, parts.count) {
    case ("instructions", 2) where parts[1] == "wakeup": return try instructionsToHook()
    case ("allocations", 2) where parts[1] == "wakeup": return try allocationsToHook()
    case ("instructions", 2): return try instructions(parts[1])
    case ("allocations", 2): return try allocations(parts[1])
    case ("switches-per-signal", 1): return try switchesPerSignal()
    case ("size", 1): return try strippedSize("Minimal") - strippedSize("Empty")
    case ("idle", 2): return Double(try idle.value(of: parts[1]))
    case ("switches-per-watchdog-period", 1):
      return try Idle.switchesPerWatchdogPeriod(program("Minimal"), in: directory)
    default: throw HarnessError("Nothing measures \"\(name)\".")
    }
  }

  private func program(_ name: String, _ arguments: String...) -> Program {
    Program(path: "\(directory)/release/\(name)", arguments: arguments)
  }

  // MARK: Instructions

  private func instructions(_ kind: String) throws -> Double {
    switch kind {
    // Of the beginning and the end of a daemon, what a program after one task does not have, and what a daemon that is
    // only started does not have.
    case "start":
      let start = try callgrind("start")
      started = start
      return try start - callgrind("task")
    case "stop": return try callgrind("stop") - (started ?? callgrind("start"))
    case "signal": return try instructions(kind, 100, 300)
    case "adding": return try instructions(kind, 100, 500)
    // More, so that what grows with all others is seen.
    case "limits", "reasons": return try instructions(kind, 500, 2000)
    case "overtaken", "refused": return try instructions(kind, 250, 1000)
    // Each delivery goes one of several ways.
    case "concurrent": return try instructions(kind, 20, 120) / Self.observers
    default: return try instructions(kind, 20, 40) / Self.observers
    }
  }

  /// Of a delivery, a signal or an addition: what twice as many take more, or so, so that the start cancels out.
  private func instructions(_ kind: String, _ few: Int, _ many: Int) throws -> Double {
    try (callgrind(kind, many) - callgrind(kind, few)) / Double(many - few)
  }

  /// The least of two, since a thread may have to wait for another in one and not in the other; of twelve where that is as
  /// much as what is counted: of 40 stops 27 take 50,000 more, so that of five all do in one gate of five. As many at a time
  /// as there are processors, of which each needs one.
  private func callgrind(_ kind: String, _ count: Int = 1) throws -> Double {
    let counted = Mutex<[Result<Double, any Error>]>([])
    let (directory, workload) = (directory, workload)
    DispatchQueue.concurrentPerform(iterations: count == 1 ? 12 : 2) { index in
      let result = Result {
        try Self.callgrind(workload, [kind, "\(count)"], "\(directory)/callgrind.\(index)")
      }
      counted.withLock { $0.append(result) }
    }
    return try counted.withLock { try $0.map { try $0.get() } }.min() ?? 0
  }

  private static func callgrind(
    _ program: String, _ arguments: [String], _ output: String
  ) throws -> Double {
    // A start reads the environment: always the same one.
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    try Tool.run(
      ["env", "-i", "PATH=\(path)", "LANG=C.UTF-8", "valgrind", "--tool=callgrind"]
        + ["--callgrind-out-file=\(output)", program] + arguments)
    guard let count = try summary(of: output) else {
      throw HarnessError("callgrind has counted nothing")
    }
    return count
  }

  /// All that was counted in one of callgrind's files.
  private static func summary(of file: String) throws -> Double? {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    return text.split(separator: "\n").first { $0.hasPrefix("summary: ") }
      .flatMap { Double($0.dropFirst(9)) }
  }

  private func allocations(_ kind: String) throws -> Double {
    var workload = program("Workload", kind, "50")
    workload.environment = ["LD_PRELOAD": "\(directory)/allocations.so"]
    let counts = try (0..<3).map { _ in
      let child = try Child(workload)
      defer { child.end() }
      guard let count = try child.values().first?.value else {
        throw HarnessError("no allocations were counted")
      }
      return count / 50 / Self.observers
    }
    return counts.min() ?? 0
  }

  // MARK: From a wake-up to a hook

  /// The median of some signals: each hook makes a dump, and so a file.
  private func instructionsToHook() throws -> Double {
    let folder = "\(directory)/wakeup"
    try? FileManager.default.removeItem(atPath: folder)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Tool.run(
      "LD_PRELOAD=\(directory)/wakeup.so", "valgrind", "--tool=callgrind",
      "--collect-atstart=no", "--callgrind-out-file=\(folder)/out", workload, "wakeup", "30")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder)
    // The file without a number is of what was counted after the last hook.
    let counts = try files.filter { $0 != "out" }
      .compactMap { try Self.summary(of: "\(folder)/\($0)") }.sorted()
    guard counts.count >= 20 else { throw HarnessError("\(counts.count) of 40 hooks were counted") }
    return counts[counts.count / 2]
  }

  private func allocationsToHook() throws -> Double {
    var workload = program("Workload", "wakeup", "30")
    workload.environment = ["LD_PRELOAD": "\(directory)/allocations.so \(directory)/wakeup.so"]
    let child = try Child(workload)
    defer { child.end() }
    guard let count = try child.values().first?.value else {
      throw HarnessError("no allocations were counted")
    }
    return count
  }

  // MARK: The rest

  /// The least of several rounds: what others do to the machine only adds to it.
  /// On one processor: on two, a thread that has been woken waits for a lock that the other still holds, or not, as the
  /// machine is.
  private func switchesPerSignal() throws -> Double {
    let child = try Child(onOneProcessor(program("Ours", "actor")))
    defer { child.end() }
    try child.untilReady()
    let signals = 100
    let rounds = try (0..<5).map { _ in
      pause(milliseconds: 20)
      let before = try Accounting(of: child).contextSwitches
      for index in 0..<signals {
        child.send(index % 2 == 0 ? SIGUSR1 : SIGUSR2)
        _ = try child.stamp()
        pause(milliseconds: 2)
      }
      return Double(try Accounting(of: child).contextSwitches - before) / Double(signals)
    }
    return rounds.min() ?? 0
  }

  private func onOneProcessor(_ program: Program) throws -> Program {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let allowed = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
    let first = allowed?.drop { !$0.isNumber }.prefix(while: \.isNumber) ?? "0"
    return Program(
      path: "/usr/bin/taskset", arguments: ["-c", "\(first)", program.path] + program.arguments)
  }

  /// In thousands of bytes.
  private func strippedSize(_ name: String) throws -> Double {
    let copy = "\(directory)/stripped"
    try Tool.run("strip", "-s", "-o", copy, program(name).path)
    let attributes = try FileManager.default.attributesOfItem(atPath: copy)
    return Double((attributes[.size] as? Int) ?? 0) / 1000
  }
}
