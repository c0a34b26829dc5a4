import Synchronization

// Other code of the process has closed descriptors that are ours: close_range(2), or a number closed twice.
extension HookExecutor {
  /// As the leader: makes again what is gone, and has the client do the same.
  ///
  /// A descriptor that is not ours any more is never closed, read or written: its number may be somebody else's.
  func seeToLoss() {
    let isRepaired = poll.repair()
    let failure = poll.failure
    let isNews = state.withLock { state in
      // Its alarm may be gone too. Once for each loss, however often the leader tries to have descriptors again.
      if isRepaired, !state.lacksDescriptors { unseatDeputy(&state) }
      defer { state.lacksDescriptors = failure != nil }
      return failure == nil || !state.lacksDescriptors
    }
    if isNews { client?.descriptorsWereLost(isRepaired: isRepaired, failure: failure) }
  }
}
