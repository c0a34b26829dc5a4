import Synchronization

// What comes in from outside: the sources, and what they report beside events.
extension LifecycleCore {
  /// Opens a source and listens to it.
  func listen(to source: any LifecycleSource) throws(LifecycleError) {
    try source.open()
    sources.withLock { $0.append(source) }
    do {
      for descriptor in source.descriptors { try executor.poll.add(descriptor) }
      try executor.listen()
    } catch {
      closeSources { $0 === source }
      throw error
    }
  }

  /// What came before is not lost.
  func closeSources(where isClosed: (any LifecycleSource) -> Bool = { _ in true }) {
    let closing = sources.withLock { sources in
      defer { sources.removeAll(where: isClosed) }
      return sources.filter(isClosed)
    }
    for source in closing {
      for descriptor in source.descriptors { executor.poll.remove(descriptor.number) }
      for input in source.close() { receive(input) }
    }
  }

  func receive(_ input: LifecycleInput) {
    switch input {
    case .event(let event): receive(event)
    case .stopTimeout(let timeout): change { state, _ in self.stopTimeoutIsKnown(timeout, &state) }
    case .sleepDelay(let delay):
      let end = now.advanced(by: delay)
      state.withLock { $0.sleepEnd = end }
    case .unitJob(let job): unitJobIsKnown(job)
    case .watchdogTick(let stall): watchdogTick(stall: stall)
    case .unmappedReload(let cause):
      change { _, work in self.tell(.unmappedReload(cause, at: .now()), &work) }
    case .complaint(let text):
      change { _, work in self.tell(.complaint(text), &work) }
    case .remark(let remark, let text):
      change { _, work in self.tell(.remark(remark, text), &work) }
    }
  }
}

extension LifecycleCore: HookExecutor.Client {
  func timerExpired() { timePassed() }

  func listenerChanged() {
    // Only the watchdog wants to know, and it costs a look into /proc.
    guard watchdogPeriod != nil else { return }
    for source in sources.withLock({ $0 }) { source.listenerChanged() }
  }

  func descriptorsAreReady(_ descriptors: [PolledDescriptor]) {
    for ready in descriptors {
      let source = sources.withLock { sources in
        sources.first { $0.polls(ready.number) }
      }
      guard let source else { continue }
      for input in source.read(ready) { receive(input) }
    }
  }
}
