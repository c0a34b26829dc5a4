// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization

@testable import DaemonLifecycleState

/// The calls of a store on other files, recorded, and failed or answered otherwise as a test says.
///
/// A call is recorded as its name and the names of its files: `write NEW 40`. The file of a save under way is `NEW`, and
/// the directory is `.`.
final class WatchedFileSystem: StateFileSystem {
  private struct Failure {
    let call: String
    let number: Int32
    var left: Int
  }

  private struct State {
    var calls: [String] = []
    var failures: [Failure] = []
    /// What each descriptor leads to.
    var open: [Int32: String] = [:]
    var mostOpen = Int.max
  }

  private let base: any StateFileSystem
  private let state = Mutex(State())
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
  }

  // MARK: For the test

  var calls: [String] { state.withLock { $0.calls } }
  var openCount: Int { state.withLock { $0.open.count } }

  func limitDescriptors(to count: Int) { state.withLock { $0.mostOpen = count } }

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

  var userID: UInt32 { base.userID }
  func open(
    _ name: String, in directory: Int32, _ mode: FileMode
  ) throws(SystemCallError) -> Int32 {
    let shown = directory == AT_FDCWD ? "." : Self.shown(name)
    try call("open \(mode) \(shown)", opens: true)
    let file = try base.open(name, in: directory, mode)
    state.withLock { $0.open[file] = shown }
    return file
  }
  func status(of file: Int32) throws(SystemCallError) -> FileStatus {
    let record = "fstat \(name(file))"
    try call(record)
    return answer(record, try base.status(of: file))
  }
  func status(
    of name: String, in directory: Int32, followingLink: Bool
  ) throws(SystemCallError) -> FileStatus {
    let record = "stat \(directory == AT_FDCWD ? "." : Self.shown(name))"
    try call(record)
    return answer(
      record, try base.status(of: name, in: directory, followingLink: followingLink))
  }
  func read(_ file: Int32, _ count: Int) throws(SystemCallError) -> [UInt8] {
    try call("read \(name(file))")
    return try base.read(file, count)
  }
  func write(_ file: Int32, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    try call("write \(name(file)) \(bytes.count)")
    return try base.write(file, bytes)
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
