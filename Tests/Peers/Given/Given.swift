// SPDX-License-Identifier: Apache-2.0
// What the examples with other packages take for granted, as given.swift is for all others; the programs of Tests/Peers
// replace it before they call an example. And what these programs share.
import DaemonLifecycle
import Dispatch
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

  public func refuse(_ text: String) {
    check(!contents.contains(text), "standard error has: \(text)")
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

// MARK: - HTTP

/// A socket that listens on 127.0.0.1, on a port that was free.
public struct Listener: Sendable {
  public let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  public let port: Int

  public init() {
    var address = loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    withSockaddr(&address) {
      _ = bind(descriptor, $0, length)
      listen(descriptor, 128)
      getsockname(descriptor, $0, &length)
    }
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  public func close() { Glibc.close(descriptor) }
}

/// Clients that send one request after another over connections that they keep.
public final class Clients: Sendable {
  public struct Counts: Sendable, CustomStringConvertible {
    /// Requests that were answered in full, and by a greeting.
    public var answers = 0
    /// Answers that began and did not end.
    public var cut = 0
    /// Requests that were sent, and not answered: over a connection whose end no answer had announced.
    public var lost = 0
    /// Connections that were refused.
    public var refused = 0
    public var description: String {
      "\(answers) answers, \(cut) cut, \(lost) lost, \(refused) connections refused"
    }
  }
  private let port: Int
  private let counts = Mutex(Counts())
  private let isOver = Atomic(false)
  private let running = DispatchGroup()

  public init(_ count: Int, port: Int) {
    self.port = port
    for _ in 0..<count {
      running.enter()
      startThread {
        while !self.isOver.load(ordering: .relaxed) { self.useConnection() }
        self.running.leave()
      }
    }
  }

  /// Waits until so many more requests were answered.
  public func untilAnswered(_ count: Int) async {
    let goal = counts.withLock { $0.answers + count }
    while counts.withLock({ $0.answers < goal }) { try? await Task.sleep(for: .milliseconds(1)) }
  }

  public var current: Counts { counts.withLock { $0 } }

  /// Ends the clients, each after its answer.
  public func stop() -> Counts {
    isOver.store(true, ordering: .relaxed)
    running.wait()
    return current
  }

  private func useConnection() {
    guard let client = connected(to: port) else {
      counts.withLock { $0.refused += 1 }
      usleep(1000)
      return
    }
    defer { close(client) }
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while !isOver.load(ordering: .relaxed) {
      _ = send(client, request, request.utf8.count, Int32(MSG_NOSIGNAL))
      let text = answer(client)
      let isWhole = text.hasSuffix("\r\n\r\nHello") || text.hasSuffix("\r\n\r\nHello again")
      counts.withLock {
        if isWhole { $0.answers += 1 } else if text.isEmpty { $0.lost += 1 } else { $0.cut += 1 }
      }
      if !isWhole || text.lowercased().contains("\r\nconnection: close\r\n") { break }
    }
  }

  /// What has come when the answer is whole, or the connection closed.
  private func answer(_ client: Int32) -> String {
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 4096)
    while !text.contains("\r\n\r\nHello") {
      let count = recv(client, &bytes, bytes.count, 0)
      guard count > 0 else { break }
      text += String(decoding: bytes.prefix(count), as: UTF8.self)
    }
    return text
  }
}

/// A thread of its own, since clients that block would hold up what the program awaits.
private func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Box(body)).toOpaque()
  pthread_create(
    &thread, nil,
    {
      Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
      return nil
    }, box)
  pthread_detach(thread)
}

/// A connection; `nil` when it is refused.
public func connected(to port: Int) -> Int32? {
  let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = loopback(port)
  let length = socklen_t(MemoryLayout<sockaddr_in>.size)
  if withSockaddr(&address, { connect(client, $0, length) }) == 0 { return client }
  close(client)
  return nil
}

private func loopback(_ port: Int) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = in_port_t(port).bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return address
}

private func withSockaddr<T>(
  _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> T
) -> T {
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
  }
}
