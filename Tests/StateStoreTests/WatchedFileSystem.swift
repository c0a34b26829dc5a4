// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

@testable import DaemonLifecycleState

/// The calls of a store on other files, recorded, and failed or answered otherwise as a test says.
///
/// A call is recorded as its name and the names of its files: `write NEW 40`. The files of saves under way are all
/// `NEW`, since their names are random, and the directory is `.`.
final class WatchedFileSystem: StateFileSystem {
  private struct Failure {
    let call: String
    let number: Int32
    var left: Int
  }

  private struct State {
    var calls: [String] = []
    /// The names that saves under way were given, in order.
    var temporaryNames: [String] = []
    var failures: [Failure] = []
    /// What each descriptor leads to.
    var open: [Int32: String] = [:]
    var mostOpen = Int.max
    var processID: Int32
  }

  private let base: any StateFileSystem
  private let state: Mutex<State>
  /// Whether it says that it has synced, and has not.
  private let lies: Bool
  /// What is done before a call, with its index.
  private let before: @Sendable (_ index: Int, _ call: String) -> Void
  /// What is answered to a call for a status.
  private let answer: @Sendable (_ call: String, FileStatus) -> FileStatus

  init(
    _ base: any StateFileSystem, lies: Bool = false,
    answer: @escaping @Sendable (_ call: String, FileStatus) -> FileStatus = { $1 },
    before: @escaping @Sendable (_ index: Int, _ call: String) -> Void = { _, _ in }
  ) {
    self.base = base
    self.lies = lies
    self.before = before
    self.answer = answer
    state = Mutex(State(processID: base.processID))
  }

  // MARK: For the test

  var calls: [String] { state.withLock { $0.calls } }
  var temporaryNames: [String] { state.withLock { $0.temporaryNames } }
  var openCount: Int { state.withLock { $0.open.count } }

  func forgetCalls() { state.withLock { $0.calls = [] } }
  func limitDescriptors(to count: Int) { state.withLock { $0.mostOpen = count } }
  /// Goes on as a child that was forked, and whose parent has ended.
  func fork() { state.withLock { $0.processID += 1 } }

  /// Fails the next calls whose record begins like this.
  func fail(_ call: String, _ number: Int32, times: Int = 1) {
    state.withLock { $0.failures.append(Failure(call: call, number: number, left: times)) }
  }

  // MARK: Calls

  private static func shown(_ name: String) -> String {
    name.hasPrefix(".") && name.hasSuffix(".new") ? "NEW" : name
  }

  private func name(_ file: Int32) -> String { state.withLock { $0.open[file] ?? "?" } }

  private func call(_ call: String, opens: Bool = false) throws(SystemCallError) {
    before(state.withLock { $0.calls.count }, call)
    try state.withLock { state throws(SystemCallError) in
      state.calls.append(call)
      if let index = state.failures.firstIndex(where: { $0.left > 0 && call.hasPrefix($0.call) }) {
        state.failures[index].left -= 1
        throw SystemCallError(number: state.failures[index].number)
      }
      if opens, state.open.count >= state.mostOpen { throw SystemCallError(number: EMFILE) }
    }
  }

  private func opened(_ file: Int32, _ name: String) -> Int32 {
    state.withLock { $0.open[file] = Self.shown(name) }
    return file
  }

  var userID: UInt32 { base.userID }
  var processID: Int32 { state.withLock { $0.processID } }
  func isRunning(_ process: Int32) -> Bool { base.isRunning(process) }

  func openDirectory(_ path: String, followingLink: Bool) throws(SystemCallError) -> Int32 {
    try call(followingLink ? "openDirectory following" : "openDirectory", opens: true)
    return opened(try base.openDirectory(path, followingLink: followingLink), ".")
  }
  func status(ofPath path: String, followingLink: Bool) throws(SystemCallError) -> FileStatus {
    let record = followingLink ? "statPath following" : "statPath"
    try call(record)
    return answer(record, try base.status(ofPath: path, followingLink: followingLink))
  }
  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    if mode == .create { state.withLock { $0.temporaryNames.append(name) } }
    try call("open \(mode) \(Self.shown(name))", opens: true)
    return opened(try base.open(name, in: directory, mode), name)
  }
  func openUnnamed(in directory: Int32) throws(SystemCallError) -> Int32 {
    try call("openUnnamed", opens: true)
    return opened(try base.openUnnamed(in: directory), "unnamed")
  }
  func link(_ file: Int32, as name: String, in directory: Int32) throws(SystemCallError) {
    try call("link \(Self.shown(name))")
    try base.link(file, as: name, in: directory)
  }
  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    let record = "fstat \(name(file))"
    try call(record)
    return answer(record, try base.status(of: file))
  }
  func status(of name: String, in directory: Int32) throws(SystemCallError) -> FileStatus {
    let record = "stat \(Self.shown(name))"
    try call(record)
    return answer(record, try base.status(of: name, in: directory))
  }
  func names(in directory: Int32) throws(SystemCallError) -> [String] {
    try call("names")
    return try base.names(in: directory)
  }
  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    try call("read \(name(file))")
    return try base.read(file, count)
  }
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try call("write \(name(file)) \(bytes.count)")
    return try base.write(file, bytes)
  }
  func truncate(_ file: Int32) throws(SystemCallError) {
    try call("truncate \(name(file))")
    try base.truncate(file)
  }
  func sync(_ file: Int32) throws(SystemCallError) {
    try call("sync \(name(file))")
    if !lies { try base.sync(file) }
  }
  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemCallError) {
    try call("rename \(Self.shown(name)) \(newName)")
    try base.rename(name, to: newName, in: directory)
  }
  func remove(_ name: String, in directory: Int32) throws(SystemCallError) {
    try call("remove \(Self.shown(name))")
    try base.remove(name, in: directory)
  }
  func lock(_ file: Int32) throws(SystemCallError) {
    try call("lock \(name(file))")
    try base.lock(file)
  }
  func unlock(_ file: Int32) {
    state.withLock { $0.calls.append("unlock \($0.open[file] ?? "?")") }
    base.unlock(file)
  }
  func close(_ file: Int32) {
    state.withLock { $0.open[file] = nil }
    base.close(file)
  }
}
