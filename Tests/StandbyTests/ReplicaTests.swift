// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleExploring
import DaemonLifecycleLease
import DaemonLifecycleTesting
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import standby

/// Replicas with a lifecycle each, and one ledger.
@Suite(.timeLimit(.minutes(5))) struct ReplicaTests {
  private let folder = try! Folder()
  private var path: String { folder.path("ledger") }

  /// Launched as `Standby` does it, and at work until `end()`.
  private func instance(_ name: String) async throws -> Instance {
    let instance = try Instance(name, path)
    try await instance.mock.launch()
    #expect(instance.mock.state == .background)
    return instance
  }

  private final class Instance: Sendable {
    let mock = MockLifecycleSubject(state: .launching)
    let sayings: AsyncStream<String>

    init(_ name: String, _ path: String) throws {
      let (sayings, sink) = AsyncStream.makeStream(of: String.self)
      self.sayings = sayings
      let replica = try Replica(name: name, ledger: path) { sink.yield($0) }
      mock.pause(for: .operator)
      replica.work(every: .seconds(1), in: mock)
    }

    /// Waits until it has said so; earlier sayings are gone then.
    func says(_ words: String) async -> Bool {
      for await saying in sayings where saying == words { return true }
      return false
    }

    /// Its loop has written or read, and sleeps again: in the foreground both do.
    func pass(_ seconds: Int) async { await mock.advance(by: .seconds(seconds)) }

    func end() async throws {
      try await mock.send(.sigterm)
      #expect(mock.exitResult?.exitStatus == 0)
      try mock.checkNothingPending()
    }

    func failure() async throws -> String {
      try await eventually { mock.exitResult != nil }
      return mock.exitResult?.error.map { "\($0)" } ?? ""
    }
  }

  private func ledger() throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  @Test func launchedInTheBackgroundItWritesNothing() async throws {
    let a = try await instance("a")
    #expect(await a.says("a stands by at 0"))
    try await a.mock.waitUntilSleeping()
    await a.pass(10)
    #expect(try ledger() == "")
    try await a.end()
  }

  @Test func oneLeadsAndTheOtherTakesOver() async throws {
    let (a, b) = (try await instance("a"), try await instance("b"))
    #expect(await a.says("a stands by at 0"))
    #expect(await b.says("b stands by at 0"))
    try await a.mock.send(.sigusr2)
    #expect(await a.says("a leads from 1"))
    try await a.mock.waitUntilSleeping(2)
    await a.pass(2)
    #expect(try ledger() == "1 a\n2 a\n3 a\n")

    try await a.mock.send(.sigusr1)
    #expect(await a.says("a stands by at 3"))
    try await b.mock.send(.sigusr2)
    #expect(await b.says("b leads from 4"))
    try await b.mock.waitUntilSleeping(2)
    await b.pass(1)
    #expect(try ledger() == "1 a\n2 a\n3 a\n4 b\n5 b\n")
    try await a.end()
    try await b.end()
  }

  /// Both were told to lead: the second waits for the first.
  @Test func neverDoBothLead() async throws {
    let a = try await instance("a")
    try await a.mock.send(.sigusr2)
    #expect(await a.says("a leads from 1"))
    try await a.mock.waitUntilSleeping(2)
    let b = try await instance("b")
    #expect(await b.says("b stands by at 1"))
    try await b.mock.send(.sigusr2)
    try await b.mock.waitUntilSleeping(2)
    await b.pass(3)
    #expect(try ledger() == "1 a\n")
    try await a.mock.send(.sigusr1)
    await b.pass(1)
    #expect(await b.says("b leads from 2"))
    try await a.end()
    try await b.end()
  }

  /// 20,000 lines are read in pieces.
  @Test(arguments: [1, 20_000]) func halfALineIsMended(_ count: Int) async throws {
    let before = (1...count).map { "\($0) a\n" }.joined() + "\(count + 1) "
    try before.write(toFile: path, atomically: true, encoding: .utf8)
    let b = try await instance("b")
    #expect(await b.says("b stands by at \(count)"))
    try await b.mock.send(.sigusr2)
    #expect(await b.says("b leads from \(count + 1)"))
    try await b.mock.waitUntilSleeping(2)
    #expect(try ledger() == before + "b\n")
    try await b.end()
  }

  @Test(arguments: ["root:x:0:0\n", "1 a\n3 a\n", "1 a\n1 a\n"])
  func anotherFileIsNotFollowed(_ text: String) async throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    let launch = try await Instance("a", path).mock.launch()
    #expect("\(launch)".contains("is no ledger: line"))
    #expect(try ledger() == text)
  }

  @Test func anotherFileIsNotTruncated() async throws {
    try "half".write(toFile: path, atomically: true, encoding: .utf8)
    let a = try await instance("a")
    try await a.mock.send(.sigusr2)
    #expect(try await a.failure() == "\(path) is no ledger: line 1 is \"half\".")
    #expect(try ledger() == "half")
  }

  /// Whenever it is told to lead, and to stop: the ledger has the lines of both in order, and in the background the other
  /// one can write to it.
  @Test func theLedgerHasNoGapInAnyRun() async throws {
    struct Wrong: Error { let lines: [Substring] }
    let explored = try await MockLifecycleSubject.explore(for: .seconds(2)) { [path] run in
      let path = path + "\(UInt64.random(in: .min ... .max))"
      let replica = try Replica(name: "a", ledger: path) { _ in }
      let lines: @Sendable () throws -> [Substring] = {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
      }
      // The other one leads until just now, so there is a line to catch up on.
      let others = Mutex<[Int]>([])
      let other = run.mock.observe(WillEnterForeground.self) { _ in
        let (ledger, number) = (try Ledger(path), try lines().count + 1)
        guard try ledger.lock() else { throw Wrong(lines: ["still locked"]) }
        // Closing is not enough: a child that another test is spawning right now has the file, too.
        defer { ledger.unlock() }
        try ledger.append("\(number) b")
        others.withLock { $0.append(number) }
      }
      run.mock.pause(for: .operator)
      replica.work(every: .seconds(1), in: run.mock)
      run.mock.addTask(mayReturn: true) { run.mock.resume(for: .operator) }
      return {
        withExtendedLifetime(other) {}
        let (lines, others) = (try lines(), others.withLock { $0 })
        let numbers = (0..<max(lines.count, others.last ?? 0)).map { $0 + 1 }
        let both = numbers.map { "\($0) \(others.contains($0) ? "b" : "a")" }
        if lines.map(String.init) != both { throw Wrong(lines: lines) }
        guard run.mock.exitResult != nil || run.mock.state == .background else { return }
        let ledger = try Ledger(path)
        guard try ledger.lock() else { throw Wrong(lines: ["still locked"]) }
        ledger.unlock()
        if run.mock.exitResult != nil { unlink(path) }
      }
    }
    print("standby: \(explored)")
  }

  /// A lease alone does not keep an old leader from writing: it was stopped while the other one got the lease, say.
  @Test func anOldLeaderIsRefused() async throws {
    let replicas = ["a", "b"].map { name in
      let lease = Lease("ledger", command: [])
      var configuration = LifecycleConfiguration(logging: .off)
      configuration.interfaces.append(.pausing(without: lease))
      return (name, lease, MockLifecycleSubject(configuration: configuration))
    }
    let sayings = Mutex<[String]>([])
    for (name, lease, mock) in replicas {
      let replica = try Replica(name: name, ledger: path, lease: lease) { saying in
        sayings.withLock { $0.append(saying) }
      }
      replica.work(every: .seconds(1), in: mock)
    }
    func write(_ index: Int, token: String) async throws {
      let (_, lease, mock) = replicas[index]
      if lease.token == nil { lease.grant(token: token) }
      try await mock.waitUntilInForeground()
      try await mock.waitUntilSleeping()
      await mock.advance(by: .seconds(2))
    }
    try await write(0, token: "7")
    try await write(1, token: "8")
    // It was not told of the loss yet.
    try await write(0, token: "7")
    let writers = try ledger().split(separator: "\n").map { $0.split(separator: " ")[1...2] }
    #expect(writers.first == ["a", "7"] && writers.last == ["b", "8"])
    #expect(writers == writers.sorted { $0[2] < $1[2] })
    try await eventually {
      sayings.withLock { $0.contains { $0.hasPrefix("a is refused with the token 7: 8 has") } }
    }
    // Nor does it hold for ever a lease that is of no use.
    await replicas[0].2.advance(by: .seconds(10))
    try await eventually { replicas[0].2.exitResult?.exitStatus == 1 }
  }

  @Test func arguments() throws {
    let options = try Options(parsing: ["--name", "a", "--unit", "u.target", "/l"])
    #expect(options.name == "a" && options.unit == "u.target" && options.ledger == "/l")
    #expect(try Options(parsing: ["--interval", "0.5", "/l"]).interval == .milliseconds(500))
    #expect(try Options(parsing: ["--help"]).wantsHelp)
    for bad in [
      [], ["--loud", "/l"], ["/l", "/m"], ["--name"], ["--name", "a\nb", "/l"],
      ["--interval", "nan", "/l"], ["--interval", "0", "/l"], ["--handover", "-1", "/l"],
      ["--elect", "e", "--unit", "u.target", "/l"],
    ] { #expect(throws: UsageError.self) { try Options(parsing: bad) } }
  }
}
