// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// The sources, and their inputs other than events.
extension LifecycleCore {
  /// Opens a source and listens to it.
  func listen(to source: any LifecycleSource) throws(LifecycleError) {
    do {
      try executor.poll.open()
      try source.open()
    } catch {
      if !executor.isListening { executor.poll.close() }
      throw error
    }
    sources.withLock { $0.append(source) }
    do {
      for descriptor in source.descriptors { try executor.poll.add(descriptor) }
      try executor.listen()
    } catch {
      closeSources { $0 === source }
      throw error
    }
  }

  /// Closes sources. Inputs that arrived before are not lost.
  func closeSources(where isClosed: (any LifecycleSource) -> Bool = { _ in true }) {
    let closing = sources.withLock { sources in
      defer { sources.removeAll(where: isClosed) }
      return sources.filter(isClosed)
    }
    for source in closing {
      for descriptor in source.descriptors { executor.poll.remove(descriptor) }
      for input in source.close() { receive(input) }
    }
  }

  @inline(never)
  func receive(_ input: LifecycleInput) {
    switch input {
    case .event(let event): receive(event)
    case .stopTimeout(let timeout): handle(.stopTimeout(timeout))
    case .sleepDelay(let delay): handle(.sleepDelay(delay))
    case .unitJob(let job): unitJobIsKnown(job)
    case .watchdogTick(let stall):
      checkSignals()
      handle(.watchdogTick(stall: stall))
    case .unmappedReload(let cause): publish(.unmappedReload(cause, at: .now()))
    case .warning(let text): publish(.warning(text))
    case .statusNote(let statusNote, let text): publish(.statusNote(statusNote, text))
    }
  }

  /// Publishes a fact that concerns only the sinks.
  private func publish(_ fact: LifecycleFact) { change { state, _ in state.effects.publish(fact) } }
}

// Signals that other code of the process takes.
extension LifecycleCore {
  /// Checks at the end of the launch, and while the body starts what may take signals.
  func watchSignals() {
    guard signalSource != nil, !configuration.signals.signals.isEmpty else { return }
    checkSignals(isThorough: true)
    for delay in [Duration.milliseconds(100), .seconds(1), .seconds(10)] { checkSignals(in: delay) }
  }

  /// Costs a system call a signal as long as all handlers are ours.
  func checkSignals(isThorough: Bool = false) {
    guard let source = signalSource, source.hasNewConflict(isThorough: isThorough) else { return }
    executor.enqueue(
      .work {
        let isUncertain = source.resolveConflicts { [weak self] in self?.receive($0) }
        if isUncertain { self.checkSignals(in: SignalConflict.patience) }
      })
  }

  private func checkSignals(in delay: Duration) {
    let check = Sleeper { [weak self] in self?.checkSignals(isThorough: true) }
    add(check, until: now.advanced(by: delay))
  }

  /// The first of the sources; `nil` in a mock, and after `restoreSignals()`.
  private var signalSource: SignalSource? { sources.withLock { $0.first as? SignalSource } }
}

extension LifecycleCore: HookExecutor.Client {
  func timerExpired() { timePassed() }

  func listenerChanged() {
    for source in sources.withLock({ $0 }) { source.listenerChanged() }
  }

  func threadsReachedLimit() {
    let count = HookExecutor.extraThreads
    receive(.warning("\(count) threads more than usual are busy or blocked in hooks: others wait."))
  }

  /// The daemon saves its state and ends with status 70. Until then signals and deadlines are seen to all the same.
  func descriptorsWereLost(_ sentence: String) {
    // Signals need no descriptor. Nothing else is released, which would close numbers that may be other files' by now.
    sources.withLock { sources in
      for source in sources where !(source is SignalSource) {
        _ = Unmanaged.passRetained(source as AnyObject)
      }
      sources.removeAll { !($0 is SignalSource) }
    }
    receive(.warning("\(sentence) State is saved, and the daemon ends with status 70."))
    handle(.lost(LifecycleCause(.other("a lost descriptor"))))
  }

  func descriptorsAreReady(_ descriptors: [PolledDescriptor]) {
    for ready in descriptors {
      let source = sources.withLock { sources in
        sources.first { $0.polls(ready.number) }
      }
      guard let source else { continue }
      source.read(ready) { receive($0) }
    }
  }
}
