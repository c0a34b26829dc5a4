// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// Two daemons, `a` and `b`, that share a ledger. One that has ended is started again.
final class Pair {
  let engine: Engine
  private(set) var ledger: LedgerLines
  private(set) var daemons: [String: TestSupport.ChildProcess] = [:]
  /// How each is to end next, if it is.
  var asked: [String: TestSupport.ChildProcess.Exit] = [:]
  /// What ended although it was not to, or otherwise.
  private(set) var surprises: [String] = []

  init(_ engine: Engine) throws {
    self.engine = engine
    ledger = LedgerLines(engine.folder + "/ledger")
    for name in ["a", "b"] { try start(name) }
  }

  private func log(_ name: String) -> String { "\(engine.folder)/\(name).log" }

  private func start(_ name: String) throws {
    let elector = "exec " + (try engine.elector(for: name))
    try elector.write(toFile: "\(engine.folder)/elect-\(name)", atomically: true, encoding: .utf8)
    daemons[name] = try Shell.start(
      """
      exec \(engine.network?.inside(name) ?? "")'\(built("standby"))' --name \(name) \
      --elect 'exec sh \(engine.folder)/elect-\(name)' --handover 2 --interval 0.01 \
      \(engine.options)\(ledger.path) >>\(log(name)) 2>&1
      """)
  }

  private func revive() throws {
    for (name, daemon) in daemons where (try? daemon.waitUntilEnded(within: 0)) != nil {
      let exit = try daemon.wait()
      if exit != asked[name] { surprises.append("\(name) has ended with \(exit)") }
      asked[name] = nil
      try start(name)
    }
  }

  /// Waits until one writes and the other waits for its turn; returns the last line of the one that writes.
  func settle() throws -> LedgerLines.Line {
    let isSettled = { [self] in
      try revive()
      return asked.isEmpty && contenders == ["2"]
    }
    // Where etcd stands still for 2 s, as on a busy machine, the standby may lose its place, as the guide says: for ever here,
    // since the holder does not end.
    if engine is EtcdEngine, (try? eventually("", within: 20, isSettled)) == nil,
      contenders == ["1"]
    {
      let writer = try nextLine().name
      print("etcd: the standby had lost its place")
      for elector in processes(of: writer == "a" ? "b" : "a").elector { kill(elector, SIGTERM) }
    }
    try until("one leads and the other waits", isSettled)
    return try nextLine()
  }

  var contenders: [String]? { try? engine.run(engine.contenders) }

  /// Waits for a line that is new.
  @discardableResult
  func nextLine(
    within seconds: Double = 60, where isRight: (LedgerLines.Line) -> Bool = { _ in true }
  ) throws -> LedgerLines.Line {
    try ledger.update()
    let count = ledger.all.count
    try until("a line is written", within: seconds) {
      try ledger.update()
      return ledger.all.count > count && isRight(ledger.all[ledger.all.count - 1])
    }
    return ledger.all[ledger.all.count - 1]
  }

  /// Waits until nobody writes.
  func silence() throws {
    try until("nobody writes") {
      try ledger.update()
      return milliseconds() - (ledger.all.last?.time ?? 0) > 1000
    }
  }

  /// Of a daemon: itself, its guard, and the elector, which have its standard error.
  func processes(of name: String) -> (daemon: [pid_t], guardian: [pid_t], elector: [pid_t]) {
    let all = Folder.names("/proc").compactMap { pid_t($0) }.filter {
      let file = "/proc/\($0)/fd/2"
      return (try? FileManager.default.destinationOfSymbolicLink(atPath: file)) == log(name)
    }
    let daemon = all.filter { $0 == daemons[name]?.pid }
    let guardian = all.filter { processStatus("Name", of: $0) == "lease-guard" }
    return (daemon, guardian, all.filter { !(daemon + guardian).contains($0) })
  }

  func send(_ signal: Int32, to name: String, as exit: TestSupport.ChildProcess.Exit) {
    asked[name] = exit
    daemons[name]?.send(signal)
  }

  /// How often one of them has said so.
  func count(_ words: String) -> Int {
    (text("a") + text("b")).components(separatedBy: words).count - 1
  }

  private func text(_ name: String) -> String {
    (try? String(contentsOfFile: log(name), encoding: .utf8)) ?? ""
  }

  /// As `eventually`, with what the daemons have said.
  func until(_ what: String, within seconds: Double = 60, _ isSo: () throws -> Bool) throws {
    do { try eventually(what, within: seconds, isSo) } catch {
      let said = ["a", "b"].flatMap { text($0).split(separator: "\n").suffix(20) }
      throw TestFailure("\(error)\n\(said.joined(separator: "\n"))")
    }
  }

  /// Ends both, and returns what is wrong.
  func end() throws -> [String] {
    _ = try settle()
    for name in ["a", "b"] { send(SIGTERM, to: name, as: .status(0)) }
    for (name, daemon) in daemons {
      let exit = try daemon.wait()
      if exit != .status(0) { surprises.append("\(name) has ended with \(exit)") }
    }
    try until("no process is left over") {
      ["a", "b"].allSatisfy { processes(of: $0) == ([], [], []) }
    }
    // From the beginning: nothing that was read is otherwise now.
    var whole = LedgerLines(ledger.path)
    try whole.update()
    try ledger.update()
    if whole.all != ledger.all { surprises.append("the ledger was rewritten") }
    return surprises + LedgerLines.problems(whole.all)
  }
}

/// Of the clock that the ledger's times are of.
func milliseconds() -> Int { Int(Date().timeIntervalSince1970 * 1000) }
