// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

@testable import DaemonLifecycle

func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

extension LifecycleMachine {
  /// Takes an input in, and takes out what it leads to.
  mutating func take(_ input: consuming Input, at now: MonotonicTime) -> Effects {
    handle(input, at: now)
    var taken = Effects()
    swap(&taken, &effects)
    return taken
  }
}

extension LifecycleMachine.Input {
  static func stopTimeout(_ time: Duration, isManagers: Bool = false) -> Self {
    .systemd(.stopTimeout(time, isManagers: isManagers))
  }
  static let managerReload = Self.systemd(.managerReload)
  static func sleepDelay(_ time: Duration) -> Self { .systemd(.sleepDelay(time)) }
}

extension Effects {
  /// Takes all calls, as the shell does.
  mutating func takeStarts() -> [CallID] {
    var ids: [CallID] = []
    while let id = starts.popFirst() { ids.append(id) }
    return ids
  }
}

/// A machine whose hooks begin at once, and end when a test says so.
final class DaemonUnderTest {
  /// What an input has led to.
  struct Output {
    let starts: [CallID]
    let messages: [Effects.Message]
    let removed: [UInt64]
    let exitsWith: Int32?
    let healthRound: UInt64?
    let works: [(work: UInt64, action: Work.Action)]
    let stalled: String?
    let isOverdue: Bool

    var facts: [LifecycleFact] {
      messages.compactMap { if case .fact(let fact) = $0 { fact } else { nil } }
    }
    var reports: [LifecycleReport] {
      messages.compactMap { if case .reported(let report, _) = $0 { report } else { nil } }
    }
    /// The transitions that have ended, and their reports.
    var ended: [(kind: LifecycleTransition, report: LifecycleReport)] {
      facts.compactMap {
        if case .ended(let kind, let report, _, _) = $0 { (kind, report) } else { nil }
      }
    }
    /// Who is named by each answer to a post.
    var answers: [[String]] {
      messages.compactMap { message in
        if case .answered(_, let report) = message { report.entries.map(\.observer) } else { nil }
      }
    }
    /// Their registrations.
    var registrations: [UInt64] {
      messages.flatMap { message in
        guard case .answered(_, let report) = message else { return [UInt64]() }
        return report.entries.map(\.registration)
      }
    }
    var launchesEnded: Int { messages.count { if case .launchEnded = $0 { true } else { false } } }
    var warnings: [String] {
      facts.compactMap { if case .warning(let text) = $0 { text } else { nil } }
    }
    var infos: [String] {
      facts.compactMap { if case .info(let text) = $0 { text } else { nil } }
    }
    /// What the service manager is asked to wait.
    var extensions: [Duration] {
      facts.compactMap { if case .extended(let time) = $0 { time } else { nil } }
    }
    /// "healthy", or what is wrong.
    var verdicts: [String] {
      facts.compactMap { fact in
        switch fact {
        case .healthy: "healthy"
        case .unhealthy(let reason): reason
        default: nil
        }
      }
    }
  }

  var machine: LifecycleMachine
  private var ids: [ObserverID] = []

  init(
    _ configuration: LifecycleConfiguration = .init(), state: LifecycleState = .foreground,
    hasServiceManager: Bool = false, watchdogPeriod: Duration? = nil,
    observing types: [any LifecycleNotification.Type]? = nil
  ) {
    let policy = LifecycleMachine.Policy(
      configuration: configuration, hasServiceManager: hasServiceManager,
      watchdogPeriod: watchdogPeriod)
    machine = LifecycleMachine(policy, state: state)
    if let types { add(types) }
  }

  var stop: Stop { machine.stop }
  var isIdle: Bool { machine.isIdle }
  var isReady: Bool { machine.isReady }

  func call(_ id: CallID?) -> Call? { id.flatMap { machine.calls.find($0) } }
  func kinds(_ ids: [CallID]) -> [NotificationKind?] { ids.map { call($0)?.step.kind } }

  /// - Parameter number: Of the observers that were added, from 1.
  func progress(of number: Int) -> LifecycleMembers.ObserverProgress? {
    machine.registry.members.progress(of: ids[number - 1])
  }

  /// - Parameter begins: Whether the hooks that it starts begin at once.
  @discardableResult func give(
    _ input: consuming LifecycleMachine.Input, at time: MonotonicTime = at(0), begins: Bool = true
  ) -> Output {
    var effects = machine.take(input, at: time)
    let starts = effects.takeStarts()
    for call in starts where begins { _ = machine.calls.move(call, to: .begun) }
    return Output(
      starts: starts, messages: effects.messages, removed: effects.removed.map(\.id.value),
      exitsWith: effects.exitsWith, healthRound: effects.healthRound,
      works: effects.works.map { ($0.id.value, $0.action) }, stalled: effects.stalled,
      isOverdue: effects.isOverdue)
  }

  @discardableResult func request(
    _ request: LifecycleRequest, at time: MonotonicTime = at(0)
  ) -> Output {
    give(.event(LifecycleEvent(request)), at: time)
  }

  @discardableResult func signal(at seconds: Int64 = 0) -> Output {
    let cause = LifecycleCause(.signal(.sigterm, from: .process(pid: 7, uid: 0), coalesced: 1))
    return give(.event(LifecycleEvent(.terminate, cause: cause)), at: at(seconds))
  }

  /// Adds a work, whose runs end when a test says so.
  @discardableResult func add(
    _ work: WorkOptions, name: ObserverName = .given("work"), phase: LifecyclePhase = .standard,
    timeout: Duration? = nil
  ) -> Output {
    add(
      Member(
        id: nextID(), phase: phase, name: name, receives: [], timeout: timeout, work: work))
  }

  private func nextID() -> ObserverID { machine.registry.members.nextID(UInt64(ids.count + 1)) }

  private func add(_ member: Member, at time: MonotonicTime = at(0)) -> Output {
    ids.append(member.id)
    return give(.add(member), at: time)
  }

  /// - Parameter number: Of the work, from 1 with the observers; the last one without.
  @discardableResult func work(
    _ input: LifecycleMachine.WorkInput, of number: Int? = nil, at time: MonotonicTime = at(0)
  ) -> Output {
    give(.work(ids[(number ?? ids.count) - 1], input), at: time)
  }

  func work(_ number: Int? = nil) -> Work? { machine.works[ids[(number ?? ids.count) - 1]] }

  /// - Parameters:
  ///   - types: What it receives; `nil` for all.
  @discardableResult func add(
    _ types: [any LifecycleNotification.Type]?, phase: LifecyclePhase = .standard,
    timeout: Duration? = nil, at time: MonotonicTime = at(0)
  ) -> Output {
    add(
      Member(
        id: nextID(), phase: phase, name: .type(Int.self),
        receives: types?.map { ObjectIdentifier($0) } ?? [nil], timeout: timeout), at: time)
  }
}

extension LifecycleMachine.WorkInput {
  /// A body's first change.
  static func ready(run: UInt64) -> Self { .readiness(run: run, lack: nil, change: 1) }
}
