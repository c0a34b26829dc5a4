// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport
import XCTest

/// Workers of a queue on a PostgreSQL of the tests' own; skipped where none is installed. `WorkerTests` is the short form.
final class QueueProcessTests: XCTestCase {
  private var server: PostgresServer!

  override func setUpWithError() throws {
    try skipUnlessLong()
    server = try PostgresServer()
    let schema = try queued("--schema")
    XCTAssertEqual(try schema.wait(), .status(0))
    try server.sql(schema.output.joined(separator: "\n"))
  }

  override func tearDownWithError() throws {
    // XCTest keeps the test case, and with it what it refers to.
    defer { server = nil }
    try server?.stop(SIGINT)
  }

  private func queued(_ arguments: String...) throws -> ChildProcess {
    try ChildProcess(
      built("queued"), arguments, environment: ["QUEUE_DATABASE": server.settings],
      stderrToStdout: true)
  }

  private func worker() throws -> ChildProcess {
    let worker = try queued()
    try worker.expect("queued: connected")
    return worker
  }

  private func stop(_ workers: [ChildProcess]) throws {
    for worker in workers { worker.send(SIGTERM) }
    for worker in workers {
      XCTAssertEqual(try worker.wait(), .status(0), worker.output.joined(separator: "\n"))
    }
  }

  private enum Interruption {
    case signal, kill
    case restart(Int32)
    case none
  }

  /// 300 jobs, four with each interruption, so that it always meets workers at work.
  func testNoJobIsLostAndNoneIsDoneTwice() throws {
    let interruptions =
      Array(repeating: Interruption.signal, count: 60) + Array(repeating: .kill, count: 10)
      + [.restart(SIGINT), .restart(SIGQUIT), .none, .none, .none]
    try withSeed { random in
      var workers = try (0..<4).map { _ in try worker() }
      for interruption in interruptions.shuffled(using: &random) {
        // Up to 0.3 s, or so long that a pause hands it back.
        let words = random.chance(5) ? 32 : random.below(4) + 1
        try server.sql(
          "INSERT INTO jobs (payload) SELECT repeat('word ', \(words)) FROM generate_series(1, 4)")
        let index = random.below(workers.count)
        switch interruption {
        case .signal: workers[index].send([SIGUSR1, SIGUSR2, SIGHUP][random.below(3)])
        case .kill:
          workers[index].send(SIGKILL)
          XCTAssertEqual(try workers[index].wait(), .signal(SIGKILL))
          workers[index] = try worker()
        case .restart(let signal):
          try server.stop(signal)
          try server.start()
        case .none: break
        }
        usleep(UInt32(random.below(200_000)))
      }
      for worker in workers { worker.send(SIGUSR2) }
      try eventually("every job is done", within: 120) {
        try server.sql("SELECT count(*) FROM jobs WHERE state = 'waiting'") == ["0"]
      }
      try stop(workers)
      let results = "SELECT count(*), count(DISTINCT job) FROM results"
      XCTAssertEqual(try server.sql(results), ["300|300"])
      let done = "state = 'done' AND attempts = 0 AND taken_by LIKE 'queued %'"
      XCTAssertEqual(try server.sql("SELECT count(*) FROM jobs WHERE \(done)"), ["300"])
    }
  }

  func testAJobThatFailsIsSetAsideAndCounted() throws {
    try server.sql("INSERT INTO jobs (payload) VALUES (''), ('two words')")
    let worker = try self.worker()
    for _ in 1...5 { try worker.expect("queued: Job 1 failed: there are no words") }
    try eventually("both are over") {
      try server.sql("SELECT state, attempts FROM jobs ORDER BY id") == ["failed|5", "done|0"]
    }
    try stop([worker])
    XCTAssertEqual(try server.sql("TABLE results"), ["2|2 words"])
  }

  /// Whatever is wrong with the connection string, its password is not said.
  func testSecretsAreNotLogged() throws {
    for (text, status) in [
      ("postgresql://user:secret@[host/", Int32(78)), ("password='secret", 78), ("secret", 78),
      ("host=\(server.folder) user=nobody password=secret", 0),
    ] {
      try text.write(toFile: server.settings, atomically: true, encoding: .utf8)
      let check = try queued("--check-config")
      XCTAssertEqual(try check.wait(), .status(status), text)
      XCTAssertFalse(check.output.joined().contains("secret"), "\(check.output)")
    }
    let worker = try queued()
    let line = try worker.line { $0.contains(", after failure 1: ") }
    XCTAssertTrue(line.contains("nobody") && !line.contains("secret"), line)
    try stop([worker])
  }
}

/// A PostgreSQL server of a test's own: in a temporary folder, reached at a socket there, and without root's rights,
/// with which it would not run.
private final class PostgresServer {
  let folder: String
  /// The file with the connection string.
  let settings: String
  private let programs: String
  private var process: ChildProcess?

  init() throws {
    programs = try Self.installed()
    // A short path, or the socket's address has no room for it.
    var template = Array("/tmp/queue-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp") }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    settings = folder + "/settings"
    try "host=\(folder) user=owner dbname=postgres\n".write(
      toFile: settings, atomically: true, encoding: .utf8)
    if getuid() == 0 { chown(folder, Self.nobody, Self.nobody) }
    let made = try program(
      "initdb", "--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username=owner",
      "--pgdata", folder + "/data")
    guard try made.wait() == .status(0) else { throw TestFailure("\(made.output)") }
    try start()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private static let nobody: UInt32 = 65534

  /// The folder of the newest.
  private static func installed() throws -> String {
    let debians = Folder.names("/usr/lib/postgresql").map { "/usr/lib/postgresql/\($0)/bin" }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let folders = debians.reversed() + path.split(separator: ":").map(String.init)
    guard let found = folders.first(where: { exists($0 + "/initdb") }), exists(found + "/postgres")
    else { throw XCTSkip("There is no PostgreSQL: apt-get install postgresql") }
    return found
  }

  private func program(_ name: String, _ arguments: String...) throws -> ChildProcess {
    var command = ["\(programs)/\(name)"] + arguments
    if getuid() == 0 {
      let id = Self.nobody
      command = ["/usr/bin/setpriv", "--reuid=\(id)", "--regid=\(id)", "--clear-groups"] + command
    }
    return try ChildProcess(command[0], Array(command.dropFirst()), stderrToStdout: true)
  }

  func start() throws {
    let process = try program(
      "postgres", "-D", folder + "/data", "-k", folder, "-c", "listen_addresses=", "-c",
      "fsync=off", "-c", "shared_buffers=16MB")
    try process.line(within: 60) { $0.hasSuffix("database system is ready to accept connections") }
    self.process = process
  }

  /// With SIGINT it ends its sessions, with SIGQUIT it crashes.
  func stop(_ signal: Int32) throws {
    process?.send(signal)
    _ = try process?.wait()
    process = nil
  }

  @discardableResult
  func sql(_ statements: String) throws -> [String] {
    let psql = try program(
      "psql", "-XAtq", "-h", folder, "-U", "owner", "-d", "postgres", "-c", statements)
    guard try psql.wait() == .status(0) else { throw TestFailure("\(psql.output)") }
    return psql.output
  }
}
