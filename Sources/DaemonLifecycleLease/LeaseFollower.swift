// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonLifecycle
import DaemonSystemd
import Synchronization

/// Keeps a daemon and its lease in step: does what `LeaseRules` decides, for one subject.
///
/// `look` is called for facts, events of the elector and times that are due: it reads the daemon's position, and acts.
/// One thread at a time does that, and the daemon handles each request before the next step, so no decision depends on
/// an old position.
final class LeaseFollower: LifecyclePart {
  /// Input for the thread that is in `look`.
  private struct Inbox: Sendable {
    var isLooking = false
    var mustLookAgain = false
    /// Whether the elector may have events.
    var isReadable = false
    /// Hooks that wait for the elector's end, and when it is killed for them.
    var hooks: [(sleeper: Sleeper, end: MonotonicTime)] = []
    /// The token that a test has granted to a mock, until the daemon can take it.
    var granted: String?
    var isRevoked = false
    var isClosed = false
    /// They may refer to other files by now.
    var hasLostDescriptors = false
    /// The cause of the last transition to the foreground, to the background or into a sleep.
    var mover: LifecycleCause?
  }

  private let lease: Lease
  private let log: @Sendable (String) -> Void
  private let inbox = Mutex(Inbox())
  /// An epoll(7) descriptor, which is readable when the elector has events; -1 in a mock, which has none.
  private let poll = Atomic<Int32>(-1)
  // Set before the launch, and not changed since.
  nonisolated(unsafe) private(set) weak var daemon: LifecycleCore?
  nonisolated(unsafe) private var alarm: Sleeper?
  nonisolated(unsafe) private var isRefused = false
  // Only for the thread in `look`, which has locked `inbox` to become that thread, and locks it again to end.
  nonisolated(unsafe) private var rules: LeaseRules
  nonisolated(unsafe) private var elector: Elector?
  /// When an elector that is to end is killed.
  nonisolated(unsafe) private var end = MonotonicTime.distantFuture
  /// The time of the alarm.
  nonisolated(unsafe) private var planned = MonotonicTime.distantFuture
  /// The problems since the lease was held, each logged once, whatever its details; and when the note of the last one
  /// leaves the status, since the elector has run for a while.
  nonisolated(unsafe) private var problems: [String] = []
  nonisolated(unsafe) private var noteEnd = MonotonicTime.distantFuture

  init(_ lease: Lease, log: @escaping @Sendable (String) -> Void) {
    (self.lease, self.log) = (lease, log)
    rules = LeaseRules(handover: lease.handover)
  }

  // MARK: A part of the daemon

  /// Begins to follow the daemon, before its launch.
  func follow(_ daemon: LifecycleCore) {
    self.daemon = daemon
    alarm = Sleeper { [weak self] in self?.look() }
    isRefused = !lease.isTaken(by: self)
    pause(daemon, because: "launch")
    if isRefused { return warn("another subject has it, and this one stands by.") }
    let hooks: [Hook] = [
      .closure(for: WillSleep.self, owner: LeaseFollower.self) {
        try await $0.giveUp($1.context)
      },
      .closure(for: WillTerminate.self, owner: LeaseFollower.self) {
        try await $0.giveUp($1.context)
      },
    ]
    // It is called last on the way down, when the others have saved, and have closed what they share.
    daemon.add(
      closures: hooks, owner: self, name: "lease \(lease.name)",
      phase: LifecyclePhase(order: .min))
  }

  func open() throws -> MonotonicTime? {
    let number = epoll_create1(Int32(bitPattern: UInt32(EPOLL_CLOEXEC)))
    guard number >= 0 else {
      throw SystemdError.system(purpose: "watch the lease \(lease.name)", errno: clinux_errno())
    }
    poll.store(number, ordering: .relaxed)
    return nil
  }

  var descriptors: [PolledDescriptor] {
    let number = poll.load(ordering: .relaxed)
    return number < 0 ? [] : [PolledDescriptor(number: number)]
  }

  func loseDescriptors() -> Bool {
    look { $0.hasLostDescriptors = true }
    return false
  }

  func read(_: PolledDescriptor, _: (SourceInput) -> Void) -> MonotonicTime? {
    look { $0.isReadable = true }
    return nil
  }

  func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .began(.foreground, let cause, _), .began(.background, let cause, _),
      .began(.sleep, let cause, _):
      inbox.withLock { $0.mover = cause }
    case .launched, .ended, .positionChanged, .terminating, .terminated: look()
    default: break
    }
    return nil
  }

  func close() -> [SourceInput] {
    look { $0.isClosed = true }
    return []
  }

  /// Waits for the elector's end, by a kill if need be; not while it is kept for an abandoned hook.
  private func giveUp(_ context: LifecycleContext) async throws {
    let sleeper = Sleeper()
    let patience = min(Elector.patience, context.timeRemaining * 3 / 4)
    try await sleeper.wait {
      look { $0.hooks.append((sleeper, .after(patience))) }
    } onCancel: {
      look { inbox in for index in inbox.hooks.indices { inbox.hooks[index].end = .now() } }
      sleeper.end(throwing: CancellationError())
    }
  }

  // MARK: In a test

  func grant(_ token: String) { look { $0.granted = token } }
  func revoke() { look { ($0.granted, $0.isRevoked) = (nil, true) } }

  /// Whether another subject may take the lease: this one is a mock, of which a test may leave some behind; or it has
  /// ended, and does not hold the lease.
  func isReplaceable(with token: String?) -> Bool {
    isMock || (token == nil && daemon?.position(for: lease.reason).isOver ?? true)
  }

  // MARK: Looking

  /// Changes the inbox, and then steps, or has the thread that steps do it again. Out of line: hooks call it.
  @inline(never) private func look(_ change: (inout Inbox) -> Void = { _ in }) {
    let begins = inbox.withLock { inbox in
      change(&inbox)
      defer { (inbox.mustLookAgain, inbox.isLooking) = (inbox.isLooking, true) }
      return !inbox.isLooking
    }
    guard begins else { return }
    repeat {
      step()
    } while inbox.withLock { inbox in
      defer { (inbox.isLooking, inbox.mustLookAgain) = (inbox.mustLookAgain, false) }
      return inbox.mustLookAgain
    }
  }

  private func step() {
    let given = inbox.withLock { inbox in
      defer { (inbox.isReadable, inbox.isRevoked) = (false, false) }
      return inbox
    }
    guard let daemon, !given.isClosed else { return drop() }
    if isRefused { return }
    if given.hasLostDescriptors {
      if rules.phase == .held, let elector, !elector.hasInput { inputWasLost(elector, daemon) }
      // The elector ends with the process.
      if rules.phase != .lost { return wakeHooks() }
    }
    if given.isReadable || elector.map({ $0.deadline <= .now() }) == true {
      for event in elector?.read() ?? [] { take(event, daemon) }
    }
    if given.isRevoked { ended("a test has revoked it", "", daemon) }
    while let action = rules.next(
      daemon.position(for: lease.reason), isAsked: !given.hooks.isEmpty, canStart: canStart,
      at: daemon.now)
    {
      perform(action, daemon)
    }
    plan(daemon, given.hooks.map(\.end).min())
    if !rules.hasElector || rules.isKept { wakeHooks() }
  }

  private var isMock: Bool { poll.load(ordering: .relaxed) < 0 }
  private var canStart: Bool { !isMock || inbox.withLock { $0.granted != nil } }

  private func perform(_ action: LeaseRules.Action, _ daemon: LifecycleCore) {
    switch action {
    case .start:
      rules.started(at: daemon.now)
      if isMock { hold(inbox.withLock { $0.granted.take() } ?? "", daemon) } else { start(daemon) }
    case .pause:
      let mover = inbox.withLock(\.mover).map { "\($0); " } ?? ""
      pause(daemon, because: "\(mover)the lease \(lease.name) is given up")
    case .end: endElector()
    case .hurry: daemon.hurry()
    case .exit(let reason):
      StandardError.writeLine(
        "lifecycle: The lease \(lease.name) is lost, and \(reason): ending with status 70.",
        .critical,
        isJournal: StandardError.isJournal(lease.environment))
      daemon.endProcess(70)
    }
  }

  private func pause(_ daemon: LifecycleCore, because cause: String) {
    let cause = LifecycleCause(.other(cause))
    daemon.takeOwn(LifecycleEvent(.pause(for: lease.reason), cause: cause))
  }

  private func wakeHooks() {
    let hooks = inbox.withLock { inbox in
      defer { inbox.hooks = [] }
      return inbox.hooks
    }
    for hook in hooks { hook.sleeper.end() }
  }

  /// Kills an elector that has not ended in time, and sets the alarm.
  private func plan(_ daemon: LifecycleCore, _ hooksEnd: MonotonicTime?) {
    end = rules.isKept || elector?.isKilled ?? true ? .distantFuture : min(end, hooksEnd ?? end)
    if end <= .now() {
      end = .distantFuture
      warn("its elector has not ended after SIGTERM, and is killed.")
      elector?.kill()
    }
    if noteEnd <= .now() { show(nil) }
    let next = min(min(rules.deadline, end), min(noteEnd, elector?.deadline ?? .distantFuture))
    guard let alarm, next != planned else { return }
    // A queued alarm would keep the earlier of two times.
    if planned < next { daemon.remove(alarm) }
    if next < .distantFuture { daemon.schedule(alarm, at: next) }
    planned = next
  }

  /// The subject is closed, or gone.
  private func drop() {
    lease.set(nil, by: self)
    elector = nil
    let number = poll.exchange(-1, ordering: .relaxed)
    if number >= 0 { CLinux.close(number) }
    wakeHooks()
  }

  // MARK: The elector

  private func start(_ daemon: LifecycleCore) {
    if !problems.isEmpty { noteEnd = .after(.seconds(10)) }
    do throws(Elector.Failure) {
      elector = try Elector(lease, poll: poll.load(ordering: .relaxed))
    } catch {
      ended(error.description, "", daemon)
      rules.isGone()
    }
  }

  private func take(_ event: Elector.Event, _ daemon: LifecycleCore) {
    switch event {
    case .line(let token): hold(token, daemon)
    case .excess(let sentence): warn(sentence)
    case .problem(let what, let detail):
      note(what, detail)
      rules.delayNext(at: daemon.now)
      endElector()
    case .ended(let what, let detail): ended(what, detail, daemon)
    case .gone:
      elector = nil
      rules.isGone()
    }
  }

  private func hold(_ token: String, _ daemon: LifecycleCore) {
    guard rules.printed() else { return }
    if !problems.isEmpty { show(nil) }
    problems = []
    lease.set(token, by: self)
    daemon.take(.fact(.info("The lease \(lease.name) is held: token \(token).")))
    let cause = LifecycleCause(.other("the lease \(lease.name), token \(token)"))
    daemon.takeOwn(LifecycleEvent(.resume(for: lease.reason), cause: cause))
  }

  private func endElector() {
    lease.set(nil, by: self)
    rules.ends()
    end = .after(Elector.patience)
    elector?.finish()
    if isMock { rules.isGone() }
  }

  private func ended(_ what: String, _ detail: String, _ daemon: LifecycleCore) {
    let wasHeld = rules.phase == .held
    guard rules.ended(at: daemon.now, delays: !isMock) else { return }
    if isMock { rules.isGone() }
    guard wasHeld else { return note(what, detail) }
    lease.set(nil, by: self)
    let isTooEarly = elector != nil && daemon.position(for: lease.reason).isTerminating
    let advice = " It was needed until state is saved; under systemd, set KillMode=mixed."
    warn("it is lost: \(what)\(detail).\(isTooEarly ? advice : "")")
    pause(daemon, because: "the lease \(lease.name) is lost: \(what)\(detail)")
  }

  /// Other code has closed it, so that the elector ends, and another daemon may be active.
  private func inputWasLost(_ elector: Elector, _ daemon: LifecycleCore) {
    // Leaked: its release would close numbers that may be other files' by now.
    _ = Unmanaged.passRetained(elector)
    self.elector = nil
    ended("other code has closed its input", "", daemon)
    rules.isGone()
  }

  private func note(_ what: String, _ detail: String) {
    if !problems.contains(what) {
      problems.append(what)
      warn(
        "\(what)\(detail). It is run again, after \(LeaseRules.longestDelay.components.seconds) s at most."
      )
    }
    show(what + detail)
  }

  /// Shows a problem in the status; `nil` removes it.
  private func show(_ note: String?) {
    noteEnd = .distantFuture
    daemon?.take(.fact(.statusNote(.elector, note)))
  }

  private func warn(_ sentence: String) { log("The lease \(lease.name): \(sentence)") }
}
