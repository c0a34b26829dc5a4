// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// The machine's effects: calls are made under the lock; all but the exit of a third signal is performed outside.
extension LifecycleCore {
  /// The work that a critical section leaves to be done outside of the lock.
  struct Errands: ~Copyable {
    /// The first call to begin. A task that has just ended a call continues with it.
    var next: HookCall?
    /// The others, in order.
    var others: [HookCall] = []
    var mail: Mail?
    /// The readiness to show to probes before any hook is called.
    var readiness: ShownReadiness?
    /// The other effects, which are rare.
    var rare: Effects?

    var isLeft: Bool {
      next != nil || !others.isEmpty || mail != nil || readiness != nil || rare != nil
    }
  }

  /// Messages for one thread to send, and their receivers.
  struct Mail {
    var messages: [Effects.Message]
    let parts: [any LifecyclePart]
    let streams: [StreamSubscriber]

    /// Whether there are answers to posts: most daemons have none, and the type of a list of closures is made at run time.
    var hasAnswers: Bool {
      messages.contains { if case .answered = $0 { true } else { false } }
    }
  }

  // MARK: Under the lock

  /// Makes the calls that are to begin, except those that were withdrawn since.
  func bindStarts(_ state: inout State, _ errands: inout Errands) {
    while let id = state.effects.starts.popFirst() {
      guard state.machine.calls.contains(id) else { continue }
      let call = HookCall(id, state.machine.calls[id], self)
      state.machine.calls.give(id, to: call)
      if errands.next == nil { errands.next = call } else { errands.others.append(call) }
    }
  }

  func bindRare(_ state: inout State, _ errands: inout Errands) {
    if let code = state.effects.exitsWith {
      StandardError.writeLine(
        "lifecycle: A third signal: ending at once, with the status \(code)",
        .error, isJournal: StandardError.isJournal(configuration.environment))
      passOn(state.effects.messages, to: state.parts)
      exitProcess(code)
    }
    for member in state.effects.removed { state.index.remove(member) }
    errands.rare = state.effects.takeRare()
  }

  /// Passes on what waits for the thread that sends, since the process ends: that may not be given time any more.
  private func passOn(_ messages: [Effects.Message], to parts: [any LifecyclePart]?) {
    let unsent = messages.compactMap { if case .fact(let fact) = $0 { fact } else { nil } }
    for part in parts ?? [] { part.processEnds(unsent) }
  }

  /// Ends the process at once.
  package func endProcess(_ exitStatus: Int32) {
    let (messages, parts) = state.withLock { ($0.effects.messages, $0.parts) }
    passOn(messages, to: parts)
    exitProcess(exitStatus)
  }

  /// Takes the waiting messages, up to a number. Facts wait for the start, which brings their receivers.
  func takeMail(_ state: inout State, upTo most: Int = LifecycleCore.mostMessages) -> Mail {
    var mail = Mail(
      messages: [], parts: state.parts ?? [], streams: state.streams)
    swap(&mail.messages, &state.effects.messages)
    if mail.messages.count > most {
      state.effects.messages = Array(mail.messages[most...])
      mail.messages.removeSubrange(most...)
    }
    if state.parts == nil {
      for case .fact(let fact) in mail.messages { state.earlyFacts.append(fact) }
      // Otherwise the facts of a subject that is never started would have no bound.
      state.earlyFacts.removeFirst(max(0, state.earlyFacts.count - 1000))
    }
    return mail
  }

  // MARK: Outside

  @inline(never)
  func perform(_ errands: consuming Errands) {
    if errands.rare?.isOverdue == true { endProcess(unsent: errands.mail?.messages ?? []) }
    if let shown = errands.readiness { show(shown) }
    if let mail = errands.mail.take() { send(consume mail) }
    if let rare = errands.rare.take() { perform(rare) }
    if let next = errands.next { executor.enqueue(.hook(next)) }
    for call in errands.others { executor.enqueue(.hook(call)) }
  }

  private func perform(_ rare: consuming Effects) {
    for case (let id, let runner as WorkRunner, let action) in rare.works {
      switch action {
      // These two call user code.
      case .finish, .cancel: executor.enqueue(.work { runner.perform(action, of: id) })
      default: runner.perform(action, of: id)
      }
    }
    if let name = rare.stalled { logThreads("\(name) has stalled") { .warning($0) } }
    if let round = rare.healthRound { askExecutors(of: round) }
    // Cancellation handlers and deinits are user code. One item each: a handler that blocks must not keep the others
    // from being cancelled.
    if !rare.cancels.isEmpty { logThreads("A hook was cancelled") { .warning($0) } }
    for case let call as HookCall in rare.cancels { executor.enqueue(.work { call.cancel() }) }
  }

  // MARK: Messages

  /// The most messages that a thread sends in one go: it has other work, and others may add messages faster.
  static let mostMessages = 256

  /// Sends messages; one thread at a time does. Messages beyond its share are left to the next critical section: at the
  /// latest the clock's, on the listening thread, between two checks for signals and deadlines.
  private func send(_ mail: consuming Mail) {
    var room = Self.mostMessages
    while true {
      room -= mail.messages.count
      for message in mail.messages { send(message, mail) }
      if mail.hasAnswers { answerPosts(mail.messages) }
      mail.messages.removeAll(keepingCapacity: true)
      let isListening = executor.listeningThread.load(ordering: .relaxed) != 0
      // The readiness is shown before the next messages are sent: the thread that added them may not have shown it yet.
      let (next, shown): (Mail?, ShownReadiness?) = state.withLock { state in
        guard !state.effects.messages.isEmpty else {
          state.isSending = false
          // The next messages reuse its storage.
          swap(&state.effects.messages, &mail.messages)
          return (nil, nil)
        }
        // Once closed, there may be no further critical section.
        if room <= 0, isListening, harness == nil, !state.machine.isClosed {
          state.isSending = false
          _ = arm(state)
          return (nil, nil)
        }
        return (takeMail(&state, upTo: room > 0 ? room : Self.mostMessages), nextReadiness(&state))
      }
      guard let next else {
        // A test's wait ends only after all facts were received, since they may begin more.
        if harness != nil { look() }
        return
      }
      if let shown { show(shown) }
      mail = next
    }
  }

  private func send(_ message: Effects.Message, _ mail: Mail) {
    switch message {
    case .fact(let fact): send(fact, to: mail.parts)
    case .announced(let step, let cause, let time):
      guard
        let notification = step.notification(
          LifecycleContext(cause: cause, time: LifecycleClock.Instant(time)))
      else { return }
      harness?.willDeliver(notification)
      resume(notification, mail.streams)
    case .reported(let report, let isHealthCheck):
      harness?.didFinish(report)
      if !isHealthCheck { resume(report, mail.streams) }
    case .answered: break
    case .launchEnded(let report, let waiters): waiters(report)
    case .exited(let exit, let waiters):
      endStreams()
      waiters(exit)
    case .reached(let waiter): waiter.end()
    }
  }

  /// Answers posters, after the other messages; those on Swift's pool together: each check for its threads takes time.
  private func answerPosts(_ messages: [Effects.Message]) {
    var others: [@Sendable () -> Void] = []
    for case .answered(let post as AwaitedPost, let report) in messages {
      if post.isOfPool { others.append { post.answer(report) } } else { post.answer(report) }
    }
    if !others.isEmpty { resume { [others] in for answer in others { answer() } } }
  }

  private func resume(_ element: any Sendable, _ streams: [StreamSubscriber]) {
    let type = ObjectIdentifier(type(of: element))
    let streams = streams.filter { $0.element == type }
    if streams.isEmpty { return }
    // An element that a stream drops may be a user's object, such as a posted notification.
    resume { for stream in streams { stream.yield(element).map { ReleasePool.release($0) } } }
  }

  private func send(_ fact: LifecycleFact, to parts: [any LifecyclePart]) {
    if parts.isEmpty { return }
    var fact = fact
    // The kernel's time, also in a mock: systemd compares it with its own.
    if virtualTime != nil, case .began(let transition, let cause, _) = fact {
      fact = .began(transition, cause, at: .now())
    }
    for part in parts { schedule(part, at: part.receive(fact)) }
  }

  func endStreams() {
    let streams = state.withLock { state in
      defer { state.streams = [] }
      return state.streams
    }
    if !streams.isEmpty { resume { for stream in streams { stream.finish() } } }
  }

  /// Asks Swift's pool and the main actor. Without a free thread neither can answer; the next tick asks again. At most
  /// one question waits in the main actor's queue.
  private func askExecutors(of round: UInt64) {
    guard swiftPoolHasThread else { return }
    let asksMainActor = change { state, now in
      let isAsked = state.machine.health.isMainActorAsked
      state.handle(.healthAsked(round: round), at: now)
      return !isAsked
    }
    Task.detached { [weak self] in self?.handle(.healthAnswer(.pool(round: round))) }
    guard asksMainActor else { return }
    Task.detached { @MainActor [weak self] in
      DispatchThreads.noteHad()
      self?.handle(.healthAnswer(.mainActor))
    }
  }

  /// Ends a process that is still running `exitGrace` after its end: exit(3) can hang, for example on a full standard
  /// output.
  private func endProcess(unsent: [Effects.Message]) {
    let (exit, grace, parts) = state.withLock { state in
      (state.machine.stop.exit, state.machine.stop.grace(state.machine.policy), state.parts)
    }
    guard let exit else { return }
    StandardError.writeLine(
      "lifecycle: Still running \((grace ?? .zero).forReading) after the last hook:"
        + " ending with status \(exit.exitStatus)", .error,
      isJournal: StandardError.isJournal(configuration.environment))
    passOn(unsent, to: parts)
    endProcess(exit.exitStatus)
    // Only tests get here.
    let kept = state.withLock { $0.keptAlive.take() }
    withExtendedLifetime(kept) {}
  }
}
