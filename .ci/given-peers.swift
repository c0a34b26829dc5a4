// SPDX-License-Identifier: Apache-2.0
// What the examples with other packages take for granted, as given.swift is for all others; the programs of Tests/Peers
// replace it before they call an example. And what these programs share.
import DaemonLifecycle
import Glibc
import Logging
import ServiceLifecycle
import Synchronization

public nonisolated(unsafe) var server: any Service = Noted("server")
public nonisolated(unsafe) var jobs: any Service = Noted("jobs")
public nonisolated(unsafe) var database: any Service = Noted("database")
public nonisolated(unsafe) var logger = Logger(label: "mydaemon")
/// Until it is cancelled.
public nonisolated(unsafe) var work: @Sendable (LifecycleSubject) async throws -> Void = { _ in
  Notes.add("work runs")
  defer { Notes.add("work ended") }
  try await Task.sleep(for: .seconds(3600))
}

public func open() async throws {}
public func close() async {}
public func items() -> AsyncStream<String> { AsyncStream { _ in } }
public func store(_ item: String) async throws {}
public func saveBookmark() async throws {}

/// A service that notes when it runs, and how it ends.
public struct Noted: Service {
  let name: String
  public init(_ name: String) { self.name = name }

  public func run() async throws {
    Notes.add("\(name) runs")
    try? await gracefulShutdown()
    Notes.add("\(name) \(Task.isCancelled ? "was cancelled" : "ended")")
  }
}

/// What happened in a program, in order.
public enum Notes {
  private static let all = Mutex<[String]>([])

  public static func add(_ note: String) { all.withLock { $0.append(note) } }
  /// Waits for notes; the program's time limit is the limit.
  public static func wait(for notes: String...) async {
    while !all.withLock({ all in notes.allSatisfy(all.contains) }) { await Task.yield() }
  }
  /// Forgets what has been noted; ends the program with a failure if that is anything else, besides what runs.
  public static func expect(_ expected: String...) { check(expected) }

  private static let expectedAtExit = Mutex<[String]>([])
  /// The same at the exit, for an example that ends with it.
  public static func expectAtExit(_ expected: [String]) {
    expectedAtExit.withLock { $0 = expected }
    atexit { Notes.check(Notes.expectedAtExit.withLock(\.self)) }
  }

  private static func check(_ expected: [String]) {
    let found = all.withLock { all in
      defer { all = [] }
      return all.filter { !$0.hasSuffix(" runs") }
    }
    if found == expected { return }
    print(
      "expected: \(expected.joined(separator: ", "))\n   found: \(found.joined(separator: ", "))")
    fflush(nil)
    _exit(1)
  }
}

/// Sends this process a signal once there are these notes.
public func signal(_ number: Int32, after notes: String...) {
  Task { [notes] in
    for note in notes { await Notes.wait(for: note) }
    kill(getpid(), number)
  }
}

/// Standard error, in a file that can be read.
public struct StandardErrorFile: Sendable {
  private let original = dup(2)
  private let file: Int32

  public init() {
    var name = Array("/tmp/peer-XXXXXX".utf8CString)
    file = mkstemp(&name)
    unlink(name)
    dup2(file, 2)
  }

  /// Waits until it has this text.
  public func expect(_ text: String) async {
    let deadline = ContinuousClock.now + .seconds(20)
    while !contents.contains(text), .now < deadline { await Task.yield() }
    check(contents.contains(text), "standard error does not have: \(text)")
  }

  public func check(_ isTrue: Bool, _ sentence: String) {
    if isTrue { return }
    let line = "\(CommandLine.arguments[0]): \(sentence)\n\(contents)\n"
    _ = line.withCString { write(original, $0, strlen($0)) }
    exit(1)
  }

  private var contents: String {
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = pread(file, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}
