import Synchronization

/// Keeps the readiness file: makes it and removes it, and never anything that is not its own.
///
/// Not a sink: sinks are told by whichever thread is about it, and this must be done before the first hook. Each
/// critical section of the core numbers what it has come to, and the thread that leaves it calls `set` before it
/// starts hooks; what an older section had to say is then void.
///
/// Its calls are a few on a local file system, at an open directory, and none of them waits for anybody.
final class ReadinessMarker: Sendable {
  private struct State {
    /// The number of the newest change that was heard of.
    var last: UInt64 = 0
    var isReady = false
    /// The file that is there; `nil` while there is none of ours.
    var made: Made?
    /// What went wrong last, so that it is said once.
    var lastError: ReadinessError?
  }

  /// A file of ours. Open, so that nobody else's gets its inode, and locked, so that nobody takes it for a
  /// dead process's.
  private struct Made {
    let directory: StateHandle
    let file: StateHandle
    let identity: FileStatus.Identity
  }

  private let path: String
  private let files: any StateFileSystem
  private let complain: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter complain: Gets a sentence when something is wrong; called under no lock.
  init(
    _ file: ReadinessFile, files: any StateFileSystem = LinuxFileSystem.shared,
    complain: @escaping @Sendable (String) -> Void
  ) {
    path = file.path
    self.files = files
    self.complain = complain
  }

  // MARK: Changes

  /// Removes what a process that was killed has left: before the launch.
  func prepare() {
    attempt { state throws(ReadinessError) in
      guard state.made == nil else { return }
      let place = try ReadinessPlace(path, files)
      try place.sweep(place.name)
    }
  }

  /// The daemon is ready, or is not: what a newer change has said stays.
  func set(_ isReady: Bool, number: UInt64) {
    attempt { state throws(ReadinessError) in
      guard number > state.last else { return }
      state.last = number
      let isNew = isReady != state.isReady
      state.isReady = isReady
      // One that could not be removed is tried again whenever there is something new.
      if !isReady { try remove(&state) } else if isNew { try make(&state) }
    }
  }

  /// Says what goes wrong, and that it is over.
  private func attempt(_ body: (inout State) throws(ReadinessError) -> Void) {
    let sentence: String? = state.withLock { state in
      do throws(ReadinessError) {
        try body(&state)
        return nil
      } catch {
        guard state.lastError != error else { return nil }
        state.lastError = error
        return error.description
      }
    }
    if let sentence { complain(sentence) }
  }

  private func make(_ state: inout State) throws(ReadinessError) {
    // One that could not be removed before is still good.
    if let made = state.made, (try? ReadinessPlace(path, files))?.holds(made.identity) == true {
      return
    }
    state.made = nil
    let place = try ReadinessPlace(path, files)
    try place.sweep(place.name)
    try place.sweep(place.temporaryName)
    state.made = try place.make().map { Made(directory: place.directory, file: $0, identity: $1) }
    state.lastError = nil
  }

  private func remove(_ state: inout State) throws(ReadinessError) {
    guard let made = state.made else { return }
    let place = try ReadinessPlace(path, files, made.directory)
    try place.remove(made.identity) { state.made = nil }
  }
}
