// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// One call of one hook, as its driver sees it: what to call, and where it is called.
struct HookCall: Sendable {
  let reference: CallReference
  let driver: HookDriver
  let entry: ObserverEntry
  let hook: Hook
  private let delivery: Delivery.Constants
  /// Whether its driver has taken it over from its last call: its progress was noted in the same step.
  var isTakenOver = false

  /// - Parameter call: A call of an observer's hook, given to this driver.
  init(
    _ id: CallID, _ call: borrowing Call, _ core: LifecycleCore, _ driver: HookDriver
  ) {
    reference = CallReference(id, call.constants, core)
    delivery = call.constants
    // Not a cast that checks, which every call would pay: the shell adds nothing but entries.
    entry = unsafeDowncast(call.member, to: ObserverEntry.self)
    hook = entry.hooks[call.hook]
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
        if isTakenOver || core.move(id, to: .driven) {
          try await call(on: asActor(target), target, core)
        }
      } else if isTakenOver || core.move(id, to: .begun) {
        try await hook.call(consume target, step, LifecycleContext(reference))
      }
      return .completed
    } catch {
      // Here, since it is user code: on the hook's driver, within the hook's time.
      return .failed(Failure(error))
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

  init(_ id: CallID, _ delivery: Delivery.Constants, _ core: LifecycleCore) {
    self.id = id
    self.core = core
    cause = delivery.cause
    time = delivery.began
  }

  var deadline: MonotonicTime? { core?.deadline(of: id) }
  var now: MonotonicTime { core?.now ?? time }
  func extendDeadline(by extra: Duration) { core?.handle(.extend(id, by: extra)) }
}

extension LifecycleContext {
  /// The context of the hook that the current task runs in; `nil` outside of a hook.
  public static var current: LifecycleContext? {
    guard let call = CallReference.current, call.deadline != nil else { return nil }
    return LifecycleContext(call)
  }
}
