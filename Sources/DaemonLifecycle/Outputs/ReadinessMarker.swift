// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// Keeps the readiness file: makes it and removes it, and never anything that is not its own.
///
/// Not a sink: sinks are told by whichever thread is about it, and this must be done before the first hook. Each
/// critical section of the core numbers what it has come to, and the thread that leaves it calls `set` before it
/// starts hooks; what an older section had to say is then void.
///
/// Its calls are a few on a local file system, at an open directory, and none of them waits for anybody. What fails is
/// tried again until it has worked: a daemon that serves must not look unready for a disk that was full for a moment.
final class ReadinessMarker: RetryTimer.Client {
  private struct State {
    /// The number of the newest change that was heard of.
    var last: UInt64 = 0
    var isReady = false
    /// The directory as it was last opened, for a process that can't open it again.
    var directory: StateHandle?
    /// Made in that directory before the launch, for a process that can't make a file.
    var spare = SpareFile()
    var made: Made?
    /// What went wrong last, so that it is said once.
    var lastError: ReadinessError?

    /// The file is there exactly if the daemon is ready, or its path is none at all.
    var isSettled: Bool { lastError?.isForGood == true || (made != nil) == isReady }
  }

  /// A file of ours. Open, so that nobody else's gets its inode, and locked, so that nobody takes it for a
  /// dead process's.
  private struct Made {
    let directory: StateHandle
    let file: StateHandle
    let identity: FileIdentity
  }

  private let path: String
  private let files: any StateFileSystem
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())
  /// Tries again; a source of the subject's. Without it, as in a mock, the next change does.
  let retries = RetryTimer(longest: .seconds(2))

  /// - Parameter warn: Gets a sentence when something is wrong; called under no lock.
  init(
    _ path: String, files: any StateFileSystem = LinuxFileSystem.shared,
    warn: @escaping @Sendable (String) -> Void
  ) {
    self.path = path
    self.files = files
    self.warn = warn
    retries.client = self
  }

  // MARK: Changes

  /// Removes what a process that was killed has left, and reserves what the file will need: before the launch.
  func prepare() {
    _ = attempt { state throws(ReadinessError) in
      guard state.made == nil else { return }
      let place = try openPlace(&state)
      state.spare.refill(in: place.directory)
      try place.sweep(place.name)
    }
  }

  /// The daemon is ready, or is not: what a newer change has said stays.
  func set(_ isReady: Bool, number: UInt64) {
    let isSettled = attempt { state throws(ReadinessError) in
      guard number > state.last else { return }
      state.last = number
      let isNew = isReady != state.isReady
      state.isReady = isReady
      // One that could not be removed is tried again whenever there is something new.
      if isNew || !isReady { try settle(&state) }
    }
    if !isSettled { retries.begin() }
  }

  func tryAgain() -> Bool {
    attempt { state throws(ReadinessError) in
      if !state.isSettled { try settle(&state) }
    }
  }

  /// Reports what goes wrong, once; false when it has to be tried again.
  private func attempt(_ body: (inout State) throws(ReadinessError) -> Void) -> Bool {
    let (sentence, isSettled): (String?, Bool) = state.withLock { state in
      do throws(ReadinessError) {
        try body(&state)
        return (nil, state.isSettled)
      } catch {
        let isNew = state.lastError != error
        state.lastError = error
        return (isNew ? error.description : nil, state.isSettled)
      }
    }
    if let sentence { warn(sentence) }
    return isSettled
  }

  private func settle(_ state: inout State) throws(ReadinessError) {
    // The descriptor of a file that was removed is free by then.
    defer { if let directory = state.directory { state.spare.refill(in: directory) } }
    if state.isReady { try make(&state) } else { try remove(&state) }
  }

  private func make(_ state: inout State) throws(ReadinessError) {
    // One that could not be removed before is still good.
    if let made = state.made, (try? openPlace(&state))?.holds(made.identity) == true { return }
    state.made = nil
    let place = try openPlace(&state)
    try place.sweep(place.name)
    try place.sweep(place.temporaryName)
    let (file, identity) = try place.make(&state.spare)
    state.made = Made(directory: place.directory, file: file, identity: identity)
    state.lastError = nil
  }

  private func remove(_ state: inout State) throws(ReadinessError) {
    guard let made = state.made else { return }
    let place = try ReadinessPlace(path, files, made.directory)
    try place.remove(made.identity) { state.made = nil }
  }

  /// By its path, which may lead elsewhere by now; where no directory can be opened, the one opened last.
  private func openPlace(_ state: inout State) throws(ReadinessError) -> ReadinessPlace {
    do throws(ReadinessError) {
      let place = try ReadinessPlace(path, files)
      state.directory = place.directory
      return place
    } catch {
      guard error.isShortage, let directory = state.directory else { throw error }
      return try ReadinessPlace(path, files, directory)
    }
  }
}
