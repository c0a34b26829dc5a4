// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// One call of one hook, as its driver sees it: what to call, and where it is called.
final class HookCall: Sendable {
  /// The call that the current task is part of; it may have ended since.
  @TaskLocal static var current: HookCall?

  /// The place of a call whose hook may continue elsewhere.
  struct Site: Sendable {
    let call: CallID
    let item: WorkItemToken
    /// The beacon that went to the main actor before the call.
    let beacon: UInt64
  }

  let id: CallID
  let core: LifecycleCore
  let driver: HookDriver
  let entry: ObserverEntry
  /// The index of the hook among the observer's.
  private let index: Int
  private let delivery: Delivery.Constants
  /// Whether it was marked as begun together with the end of its driver's last call.
  private let hasBegun: Bool

  init(
    _ start: Effects.Start, _ entry: ObserverEntry, _ core: LifecycleCore, _ driver: HookDriver,
    hasBegun: Bool
  ) {
    id = start.call
    index = start.hook
    delivery = start.delivery
    self.entry = entry
    self.core = core
    self.driver = driver
    self.hasBegun = hasBegun
  }

  var step: LifecycleStep { delivery.step }
  private var hook: Hook { entry.hooks[index] }

  // MARK: Calling

  /// Calls the hook, as the current call of its task. Returns how it has ended.
  func run() async -> LifecycleMachine.CallEnd {
    await Self.$current.withValue(self) { await call() }
  }

  nonisolated(nonsending) private func call() async -> LifecycleMachine.CallEnd {
    guard let target = entry.target else { return .gone }
    let hook = hook
    do {
      if let asActor = entry.asActor, hook.isMethod {
        if hasBegun || core.move(id, to: .driven) { try await call(on: asActor(target), target) }
      } else if hook.completesSynchronously {
        if hasBegun || core.move(id, to: .begun) {
          try await hook.call(consume target, step, LifecycleContext(self))
        }
      } else {
        try await callNotingSite(target)
      }
      return .completed
    } catch let late as ForegroundRounds.LateError {
      return .failed(late.error, text: "\(late.error)", isLate: true)
    } catch {
      // Here, since it is user code: on the hook's driver, within the hook's time.
      return .failed(error, text: "\(error)")
    }
  }

  /// Calls the hook in its isolation. Once this has begun the call is on the actor, and one that was abandoned while it
  /// waited for the actor does not begin.
  private func call(
    on _: isolated any Actor, _ target: consuming any AnyObject & Sendable
  ) async throws {
    guard core.move(id, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(self))
  }

  /// Calls a hook that may be isolated to the main actor, or suspend, which is known only afterwards.
  nonisolated(nonsending) private func callNotingSite(
    _ target: any AnyObject & Sendable
  ) async throws {
    let item = core.executor.currentItem
    if let item {
      driver.note(Site(call: id, item: item, beacon: core.beacon.send()))
    }
    guard hasBegun || core.move(id, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(self))
    if let item, item.isCurrent { hook.completesSynchronously = true }
  }

  // MARK: Position

  /// The actual progress of a hook that has begun as far as its driver can tell: a class's hook may be isolated to the
  /// main actor.
  var executionStatus: LifecycleReport.Outcome.Progress {
    guard let site = driver.site(of: id) else { return .running }
    if site.item.isRunning || core.beacon.isAnswered(site.beacon) { return .running }
    return core.beacon.hasEverAnswered ? .waitingForExecutor : .unknown
  }
}

extension HookCall: RunningHook {
  var cause: LifecycleCause { delivery.cause }
  var time: MonotonicTime { delivery.began }
  var deadline: MonotonicTime? { core.deadline(of: id) }
  var now: MonotonicTime { core.now }
  var isCurrent: Bool { core.isCurrent(id) }
  func extendDeadline(by extra: Duration) { core.handle(.extend(id, by: extra)) }
}

extension LifecycleContext {
  /// The context of the hook that the current task runs in; `nil` outside of a hook.
  public static var current: LifecycleContext? {
    guard let call = HookCall.current, call.isCurrent else { return nil }
    return LifecycleContext(call)
  }
}
