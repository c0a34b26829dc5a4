// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A source that the listening thread reads.
struct OpenSource: Sendable {
  let source: any LifecycleSource
  /// Does what is due at the source's deadline.
  let wakeUp: Sleeper
}

// The sources, and their inputs.
extension LifecycleCore {
  /// Opens a source and listens to it.
  func listen(to source: any LifecycleSource) throws {
    do {
      try executor.poll.open()
      try source.open()
    } catch {
      if !executor.isListening { executor.poll.close() }
      for input in source.close() { take(input) }
      throw error
    }
    let wakeUp = Sleeper { [weak self, weak source] in
      guard let self, let source else { return }
      for input in source.timePassed() { take(input) }
      scheduleWakeUp(of: source)
    }
    sources.withLock { $0.append(OpenSource(source: source, wakeUp: wakeUp)) }
    do {
      for descriptor in source.descriptors { executor.poll.add(descriptor) }
      try executor.listen()
    } catch {
      closeSources { $0 === source }
      throw error
    }
    scheduleWakeUp(of: source)
  }

  private func scheduleWakeUp(of source: any LifecycleSource) {
    guard let deadline = source.deadline,
      let open = sources.withLock({ $0.first { $0.source === source } })
    else { return }
    schedule(open.wakeUp, at: deadline)
  }

  /// Closes sources. Inputs that arrived before are not lost.
  func closeSources(where isClosed: (any LifecycleSource) -> Bool = { _ in true }) {
    let closing = sources.withLock { sources in
      defer { sources.removeAll { isClosed($0.source) } }
      return sources.filter { isClosed($0.source) }
    }
    for closing in closing {
      for descriptor in closing.source.descriptors { executor.poll.remove(descriptor) }
      for input in closing.source.close() { take(input) }
      remove(closing.wakeUp)
    }
  }

  /// Takes an input of a source.
  @inline(never)
  func take(_ input: SourceInput) {
    switch input {
    case .event(let event): receive(event)
    case .unitJob(let job): unitJobIsKnown(job)
    case .watchdogTick(let stall):
      for output in state.withLock({ $0.readiness }) { retry(output, at: output.check()) }
      handle(.watchdogTick(stall: stall))
    case .stopTimeout(let timeout, let isManagers):
      handle(.stopTimeout(timeout, isManagers: isManagers))
    case .sleepDelay(let delay): handle(.sleepDelay(delay))
    case .ended(let task): cancel(task)
    case .fact(let fact): handle(.fact(fact))
    }
  }

  // MARK: Outputs that try again

  func prepareReadiness() {
    for output in state.withLock({ $0.readiness }) { output.prepare() }
  }

  func show(_ shown: ShownReadiness) {
    for output in shown.outputs {
      retry(output, at: output.set(shown.isReady, number: shown.number))
    }
  }

  /// Has an output try again at a time. A mock has no thread for it: there a sink is given the next
  /// fact, and a readiness file the next change.
  func retry(_ output: any Retrying, at deadline: MonotonicTime?) {
    guard let deadline, virtualTime == nil else { return }
    let attempt = Sleeper { [weak self, weak output] in
      guard let self, let output else { return }
      retry(output, at: output.tryAgain())
      // One that is a source too, as the bus is, has its inputs taken.
      sources.withLock { $0.first { $0.source === output } }?.wakeUp.end()
    }
    schedule(attempt, at: deadline)
  }
}

extension LifecycleCore: HookExecutor.Client {
  func descriptorsAreReady(_ ready: EventPoll.Ready) {
    if let loss = ready.loss { descriptorsWereLost(loss) }
    for descriptor in ready.descriptors {
      let polling = sources.withLock { $0.first { $0.source.polls(descriptor.number) } }
      guard let source = polling?.source else { continue }
      source.read(descriptor) { take($0) }
      scheduleWakeUp(of: source)
    }
    if ready.timerExpired { timePassed() }
  }

  func listenerChanged() {
    for open in sources.withLock({ $0 }) { open.source.listenerChanged() }
  }

  func threadsReachedLimit() {
    warn("\(HookExecutor.extraThreads) extra threads are blocked in hooks; other hooks must wait.")
  }

  /// The daemon saves its state and ends, with status 70 as a rule. Until then signals and deadlines are handled all the
  /// same.
  private func descriptorsWereLost(_ sentence: String) {
    if state.withLock({ $0.machine.stop.isLost }) { return }
    // Nothing is released, which would close numbers that may be other files' by now.
    sources.withLock { sources in
      for open in sources where !open.source.outlivesLoss {
        _ = Unmanaged.passRetained(open.source as AnyObject)
      }
      sources.removeAll { !$0.source.outlivesLoss }
    }
    let isOver = state.withLock { $0.machine.stop.exit != nil }
    warn(isOver ? sentence : "\(sentence) The daemon saves its state and ends.")
    handle(.lost(LifecycleCause(.other("a lost descriptor"))))
  }
}
