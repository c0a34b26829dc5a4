// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The readiness file: this creates and removes it, and never touches a file that is not its own.
///
/// It is no sink: any thread may call sinks, later, and this must be done before the first hook. Each critical section
/// of the core numbers its readiness, and the thread that leaves it calls `set` before it starts hooks; an older number
/// then has no effect.
///
/// It makes a few system calls on a local file system, relative to an open directory, which do not block. Failed calls
/// are tried again until they succeed: a daemon that serves must not look unready because the disk was full for a
/// moment.
final class ReadinessMarker: Retrying {
  private struct State {
    /// The number of the newest change.
    var last: UInt64 = 0
    var isReady = false
    var backoff = Backoff(longest: .seconds(2))
    /// The directory as it was last opened, for a process that can't open it again.
    var directory: StateHandle?
    /// A file that is made in that directory before the launch, for a process that can't make one later.
    var spare = SpareFile()
    var made: Made?
    /// The last error, so that it is logged once.
    var lastError: ReadinessError?

    /// Whether the file exists exactly if the daemon is ready, or its path can't be used at all.
    var isSettled: Bool { lastError?.isForGood == true || (made != nil) == isReady }
  }

  /// A file that this process made. It is open, so that its inode is not reused, and locked, so that it is not taken
  /// for that of a dead process.
  private struct Made {
    let directory: StateHandle
    let file: StateHandle
    let identity: FileIdentity
  }

  private let path: String
  private let files: any StateFileSystem
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter warn: Receives a sentence about a problem; called without a lock.
  init(
    _ path: String, files: any StateFileSystem = LinuxFileSystem.shared,
    warn: @escaping @Sendable (String) -> Void
  ) {
    self.path = path
    self.files = files
    self.warn = warn
  }

  // MARK: Changes

  /// Removes the file of a process that was killed, and reserves the resources for this one: called before the launch.
  func prepare() {
    _ = attempt { state throws(ReadinessError) in
      guard state.made == nil else { return }
      let place = try openPlace(&state)
      state.spare.refill(in: place.directory)
      try place.sweep(place.name)
    }
  }

  /// Sets the readiness, unless a newer change has been set. Returns when to try again what has failed.
  @discardableResult func set(_ isReady: Bool, number: UInt64) -> MonotonicTime? {
    attempt { state throws(ReadinessError) in
      guard number > state.last else { return }
      state.last = number
      let isNew = isReady != state.isReady
      state.isReady = isReady
      // One that could not be removed is tried again whenever there is something new.
      if isNew || !isReady { try settle(&state) }
    }
  }

  func tryAgain() -> MonotonicTime? {
    attempt { state throws(ReadinessError) in
      state.backoff.begin()
      if !state.isSettled { try settle(&state) }
    }
  }

  /// Reports a problem, once. Returns when the attempt must be repeated.
  private func attempt(_ body: (inout State) throws(ReadinessError) -> Void) -> MonotonicTime? {
    let (sentence, retry): (String?, MonotonicTime?) = state.withLock { state in
      var sentence: String?
      do throws(ReadinessError) { try body(&state) } catch {
        if state.lastError != error { sentence = error.description }
        state.lastError = error
      }
      guard state.isSettled else { return (sentence, state.backoff.nextAttempt()) }
      state.backoff.succeed()
      return (sentence, nil)
    }
    if let sentence { warn(sentence) }
    return retry
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
