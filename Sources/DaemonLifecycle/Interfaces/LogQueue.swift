// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// Passes entries on to an author's handler, one at a time and in order, each on a thread of its own.
///
/// A second thread watches: an entry that the handler has not taken within a second, or for which it throws, is written to
/// standard error. Both threads exist only while there is something to pass on. An entry counts as passed on only
/// after that, so that what a process is about to take with it can be written: rather twice than never.
package final class LogQueue: Sendable {
  typealias Handler = @Sendable (LifecycleLogEntry) throws -> Void

  private struct State {
    /// The entries to pass on, each until its time is over.
    var waiting = Deque<(entry: LifecycleLogEntry, end: MonotonicTime)>()
    /// The entry that is being passed on, and its number.
    var current: LifecycleLogEntry?
    var number: UInt64 = 0
    /// Whether the handler has not returned, as far as the watching thread knows.
    var isBusy = false
    /// Whether there is a watching thread.
    var isWatched = false
    /// Signaled when that ends.
    var idle: [Semaphore] = []

    mutating func endWatch() {
      isWatched = false
      for waiter in idle { waiter.signal() }
      idle = []
    }
  }

  static let patience = Duration.seconds(1)
  /// More entries are written at once.
  static let mostWaiting = 1000

  private let handler: Handler
  /// Writes an entry to standard error; tests replace it.
  private let write: @Sendable (LifecycleLogEntry) -> Void
  private let state = Mutex(State())
  /// Signaled when the handler has returned.
  private let returned = Semaphore()

  init(
    write: @escaping @Sendable (LifecycleLogEntry) -> Void = {
      $0.writeLines(isJournal: StandardError.isJournal(.current))
    }, _ handler: @escaping Handler
  ) {
    (self.write, self.handler) = (write, handler)
  }

  func add(_ entry: LifecycleLogEntry) {
    let end = MonotonicTime.now().advanced(by: Self.patience)
    let (isFull, isWatched) = state.withLock { state in
      if state.waiting.count >= Self.mostWaiting { return (true, true) }
      state.waiting.append((entry, end))
      defer { state.isWatched = true }
      return (false, state.isWatched)
    }
    if isFull { return write(entry) }
    if isWatched || Thread.spawn(named: "lifecycle-log", { while self.passNext() {} }) { return }
    state.withLock { $0.endWatch() }
    writeRest()
  }

  /// Waits until all has been passed on: for no longer than the patience, and the time that writing takes.
  func finish() {
    let idle = Semaphore()
    let isWatched = state.withLock { state in
      if state.isWatched { state.idle.append(idle) }
      return state.isWatched
    }
    if isWatched, !idle.wait(for: Self.patience * 3 / 2) { writeRest() }
  }

  /// Writes what has not been passed on to standard error, since the process ends.
  func writeRest() {
    let (current, waiting) = state.withLock { state in
      defer { (state.current, state.waiting) = (nil, Deque()) }
      return (state.current, state.waiting)
    }
    if let current { write(current) }
    var rest = waiting
    while let (entry, _) = rest.popFirst() { write(entry) }
  }

  // MARK: The watching thread

  /// Passes the first entry on. Returns false when there is none, and the thread ends.
  private func passNext() -> Bool {
    ReleasePool.open()
    let end = next()
    if let (number, end) = end, !hand(number, by: end) { give(up: number) }
    // A deinit that blocks must not keep the next entry back.
    if let released = ReleasePool.close() {
      _ = Thread.spawn(named: "lifecycle-log") { _ = released }
    }
    return end != nil
  }

  private func next() -> (UInt64, MonotonicTime)? {
    state.withLock { state in
      guard let (entry, end) = state.waiting.popFirst() else {
        state.endWatch()
        return nil
      }
      state.current = entry
      state.number += 1
      return (state.number, end)
    }
  }

  /// Has the handler take an entry. Returns whether it did in time.
  private func hand(_ number: UInt64, by end: MonotonicTime) -> Bool {
    // It may still have an earlier one.
    guard isFree(by: end), MonotonicTime.now() < end, let entry = entry(number) else {
      return false
    }
    state.withLock { $0.isBusy = true }
    let begins = Thread.spawn(named: "lifecycle-log") { [self] in
      if (try? handler(entry)) != nil { passedOn(number) } else { give(up: number) }
      returned.signal()
    }
    if !begins { state.withLock { $0.isBusy = false } }
    return begins && isFree(by: end)
  }

  private func isFree(by end: MonotonicTime) -> Bool {
    if !state.withLock(\.isBusy) { return true }
    guard returned.wait(for: MonotonicTime.now().duration(to: end)) else { return false }
    state.withLock { $0.isBusy = false }
    return true
  }

  // MARK: The entry that is being passed on

  /// Returns it, unless it has been passed on, or written.
  private func entry(_ number: UInt64) -> LifecycleLogEntry? {
    state.withLock { $0.number == number ? $0.current : nil }
  }

  private func give(up number: UInt64) {
    if let entry = entry(number) { write(entry) }
    passedOn(number)
  }

  private func passedOn(_ number: UInt64) {
    _ = state.withLock { $0.number == number ? $0.current.take() : nil }
  }
}
