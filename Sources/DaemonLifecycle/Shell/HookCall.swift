// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// One call of one hook, as its driver sees it: what to call, and where it is called.
struct HookCall: Sendable {
  /// The place of a call whose hook may continue elsewhere.
  struct Site: Sendable {
    let call: CallID
    let item: WorkItemToken
    /// The beacon that went to the main actor before the call.
    let beacon: UInt64
  }

  let reference: CallReference
  let driver: HookDriver
  let entry: ObserverEntry
  private let hook: Hook
  private let delivery: Delivery.Constants

  init(
    _ start: Effects.Start, _ hook: Hook, _ entry: ObserverEntry, _ core: LifecycleCore,
    _ driver: HookDriver
  ) {
    reference = CallReference(start, core)
    self.hook = hook
    delivery = start.delivery
    self.entry = entry
    self.driver = driver
  }

  var id: CallID { reference.id }
  var step: LifecycleStep { delivery.step }

  // MARK: Calling

  /// Calls the hook, as the current call of its task. Returns how it has ended.
  func run(for core: LifecycleCore) async -> LifecycleMachine.CallEnd {
    await CallReference.$current.withValue(reference) { await call(for: core) }
  }

  nonisolated(nonsending) private func call(
    for core: LifecycleCore
  ) async -> LifecycleMachine.CallEnd {
    guard let target = entry.target else { return .gone }
    let hook = hook
    do {
      if let asActor = hook.asActor {
        if core.move(id, to: .driven) { try await call(on: asActor(target), target, core) }
      } else if hook.completesSynchronously {
        if core.move(id, to: .begun) {
          try await hook.call(consume target, step, LifecycleContext(reference))
        }
      } else {
        try await callNotingSite(target, core)
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
    on _: isolated any Actor, _ target: consuming any AnyObject & Sendable, _ core: LifecycleCore
  ) async throws {
    guard core.move(id, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(reference))
  }

  /// Calls a hook that may be isolated to the main actor, or suspend, which is known only afterwards.
  nonisolated(nonsending) private func callNotingSite(
    _ target: any AnyObject & Sendable, _ core: LifecycleCore
  ) async throws {
    let item = core.executor.currentItem
    if let item {
      driver.note(Site(call: id, item: item, beacon: core.beacon.send()))
    }
    guard core.move(id, to: .begun) else { return }
    try await hook.call(target, step, LifecycleContext(reference))
    if let item, item.isCurrent { hook.completesSynchronously = true }
  }
}

/// A call, as its context and the tasks that its hook starts know it. They may keep it for ever, so it holds neither
/// the observer nor the core.
final class CallReference: RunningHook {
  /// The call that the current task is part of; it may have ended since.
  @TaskLocal static var current: CallReference?

  let id: CallID
  weak let core: LifecycleCore?
  let cause: LifecycleCause
  /// When its delivery began.
  let time: MonotonicTime

  init(_ start: Effects.Start, _ core: LifecycleCore) {
    id = start.call
    self.core = core
    cause = start.delivery.cause
    time = start.delivery.began
  }

  var deadline: MonotonicTime? { core?.deadline(of: id) }
  var now: MonotonicTime { core?.now ?? time }
  var isCurrent: Bool { core?.isCurrent(id) ?? false }
  func extendDeadline(by extra: Duration) { core?.handle(.extend(id, by: extra)) }
}

extension LifecycleContext {
  /// The context of the hook that the current task runs in; `nil` outside of a hook.
  public static var current: LifecycleContext? {
    guard let call = CallReference.current, call.isCurrent else { return nil }
    return LifecycleContext(call)
  }
}
