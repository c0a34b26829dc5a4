// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A part that the listening thread reads and wakes.
struct OpenPart: Sendable {
  let part: any LifecyclePart
  let wakeUp: Sleeper
}

// The parts, and their inputs.
extension LifecycleCore {
  /// Opens a part and listens to it.
  func listen(to part: any LifecyclePart) throws {
    let deadline: MonotonicTime?
    do {
      try executor.poll.open()
      deadline = try part.open()
    } catch {
      if !executor.isListening { executor.poll.close() }
      for input in part.close() { take(input) }
      throw error
    }
    let wakeUp = Sleeper { [weak self, weak part] in
      guard let self, let part else { return }
      schedule(part, at: part.wake { take($0) })
    }
    openParts.withLock { $0.append(OpenPart(part: part, wakeUp: wakeUp)) }
    do {
      for descriptor in part.descriptors { executor.poll.add(descriptor) }
      try executor.listen()
    } catch {
      closeParts { $0 === part }
      throw error
    }
    schedule(part, at: deadline)
  }

  /// Has a part woken at a time, or earlier. In a mock none is woken: there a sink tries again with the next fact, and
  /// a readiness file with the next change.
  func schedule(_ part: any LifecyclePart, at deadline: MonotonicTime?) {
    guard let deadline,
      let open = openParts.withLock({ $0.first { $0.part === part } })
    else { return }
    schedule(open.wakeUp, at: deadline)
  }

  /// Closes parts. Inputs that arrived before are not lost.
  func closeParts(where isClosed: (any LifecyclePart) -> Bool = { _ in true }) {
    let closing = openParts.withLock { parts in
      defer { parts.removeAll { isClosed($0.part) } }
      return parts.filter { isClosed($0.part) }
    }
    for closing in closing {
      for descriptor in closing.part.descriptors { executor.poll.remove(descriptor) }
      for input in closing.part.close() { take(input) }
      remove(closing.wakeUp)
    }
  }

  /// Takes an input of a part.
  @inline(never)
  package func take(_ input: SourceInput) {
    switch input {
    case .event(let event): receive(event)
    case .unitJob(let job): unitJobIsKnown(job)
    case .awake(let request, let lack): awakeIsKnown(request, lack: lack)
    case .watchdogTick(let stall):
      for part in state.withLock({ $0.showingParts }) { schedule(part, at: part.check()) }
      handle(.watchdogTick(stall: stall))
    case .systemd(let input): handle(.systemd(input))
    case .ended(let task): cancel(task)
    case .fact(let fact): handle(.fact(fact))
    }
  }

  // MARK: Readiness

  func show(_ shown: ShownReadiness) {
    for part in shown.parts { schedule(part, at: part.show(shown.isReady, number: shown.number)) }
  }
}

extension LifecycleCore: HookExecutor.Client {
  func descriptorsAreReady(_ ready: EventPoll.Ready) {
    if let loss = ready.loss { descriptorsWereLost(loss) }
    for descriptor in ready.descriptors {
      let polling = openParts.withLock { $0.first { $0.part.polls(descriptor.number) } }
      guard let part = polling?.part else { continue }
      schedule(part, at: part.read(descriptor) { take($0) })
    }
    if ready.timerExpired { timePassed() }
  }

  func listenerChanged() {
    for open in openParts.withLock({ $0 }) { open.part.listenerChanged() }
  }

  func threadsReachedLimit(_ count: Int) {
    warn("\(count) threads are blocked in hooks and their child tasks; others must wait.")
  }

  /// The daemon saves its state and ends, with status 70 as a rule. Until then signals and deadlines are still handled.
  private func descriptorsWereLost(_ sentence: String) {
    if state.withLock({ $0.machine.stop.isLost }) { return }
    // Leaked are those that end: their release would close numbers that may be other files' by now.
    for part in openParts.withLock({ $0.map(\.part) }) where !part.loseDescriptors() {
      _ = Unmanaged.passRetained(part as AnyObject)
      openParts.withLock { $0.removeAll { $0.part === part } }
    }
    let isOver = state.withLock { $0.machine.stop.exit != nil }
    warn(isOver ? sentence : "\(sentence) The daemon saves its state and ends.")
    handle(.lost(LifecycleCause(.other("a lost descriptor"))))
  }
}
