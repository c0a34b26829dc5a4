// SPDX-License-Identifier: Apache-2.0
/// The notifications that the package delivers: the row of each, and the call of its hook. Its type and its protocol
/// have a file of their own; declared hooks are also in `DeclaredHooks.swift`, payloads in `LifecycleStep.swift`.
package enum NotificationKind: Int, CaseIterable, Sendable {
  case didFinishLaunching, willEnterForeground, didEnterBackground, shouldSaveState, shouldReload
  case willSuspend, didResume, didReceivePressure, checkHealth, willTerminate

  private func makeRow() -> Row {
    switch self {
    case .didFinishLaunching:
      return Row(
        DidFinishLaunching.init, done: "launched", act: "launch",
        changes: .state(.background, from: .launching), declared: { $0._launchHook },
        search: { ($0 as? any LaunchObserver.Type)?.launchHook })
    case .willEnterForeground:
      return Row(
        WillEnterForeground.init, done: "in the foreground", act: "foreground",
        changes: .state(.foreground, from: .background), declared: { $0._foregroundHook },
        search: { ($0 as? any ForegroundObserver.Type)?.foregroundHook })
    case .didEnterBackground:
      return Row(
        DidEnterBackground.init, .down, yields: false, done: "paused", act: "pause",
        changes: .state(.background, from: .foreground), declared: { $0._backgroundHook },
        search: { ($0 as? any BackgroundObserver.Type)?.backgroundHook })
    case .shouldSaveState:
      return Row(
        ShouldSaveState.init, .down, yields: false, done: "saved", act: "save",
        declared: { $0._stateHook }, search: { ($0 as? any StateObserver.Type)?.stateHook })
    case .shouldReload:
      return Row(
        ShouldReload.init, done: "reloaded", act: "reload", declared: { $0._reloadHook },
        search: { ($0 as? any ReloadObserver.Type)?.reloadHook })
    case .willSuspend:
      return Row(
        WillSuspend.init, .down, done: "ready to sleep", act: "suspend",
        changes: .suspended(true), declared: { $0._suspendHook },
        search: { ($0 as? any SuspendObserver.Type)?.suspendHook })
    case .didResume:
      return Row(
        DidResume.init, done: "resumed", act: "resume", changes: .suspended(false),
        declared: { $0._resumeHook }, search: { ($0 as? any ResumeObserver.Type)?.resumeHook })
    case .didReceivePressure:
      return Row(
        DidReceivePressure.init, done: "pressure relieved", act: "pressure",
        declared: { $0._pressureHook },
        search: { ($0 as? any PressureObserver.Type)?.pressureHook })
    case .checkHealth:
      return Row(
        CheckHealth.init, done: "well", act: "check", declared: { $0._healthHook },
        search: { ($0 as? any HealthObserver.Type)?.healthHook })
    case .willTerminate:
      return Row(
        WillTerminate.init, .down, yields: false, done: "terminated", act: "terminate",
        declared: { $0._terminationHook },
        search: { ($0 as? any TerminationObserver.Type)?.terminationHook })
    }
  }
}

extension Hook {
  /// The way in which a hook is called. Each hook has its own case: a call through an async closure would change
  /// executors once more, which costs as much as a short hook.
  enum Method: Sendable {
    case didFinishLaunching(Cast<any LaunchObserver>)
    case willEnterForeground(Cast<any ForegroundObserver>)
    case didEnterBackground(Cast<any BackgroundObserver>)
    case shouldSaveState(Cast<any StateObserver>)
    case shouldReload(Cast<any ReloadObserver>)
    case willSuspend(Cast<any SuspendObserver>)
    case didResume(Cast<any ResumeObserver>)
    case didReceivePressure(Cast<any PressureObserver>)
    case checkHealth(Cast<any HealthObserver>)
    case willTerminate(Cast<any TerminationObserver>)
    case wildcard(Cast<any WildcardObserver>)
    /// A closure of the user, called with the owner that it is bound to, or a stand-in.
    case closure(Closure)

    /// Calls the hook of `target`, whose type the cast knows, with a step whose notification is of the hook's type.
    @inline(__always)
    nonisolated(nonsending) func call(
      _ target: consuming any AnyObject & Sendable, _ step: LifecycleStep,
      _ context: LifecycleContext
    ) async throws {
      switch self {
      case .didFinishLaunching(let cast):
        try await cast(target).didFinishLaunching(
          DidFinishLaunching(context: context))
      case .willEnterForeground(let cast):
        try await cast(target).willEnterForeground(
          WillEnterForeground(context: context))
      case .didEnterBackground(let cast):
        try await cast(target).didEnterBackground(
          DidEnterBackground(context: context))
      case .shouldSaveState(let cast):
        try await cast(target).shouldSaveState(ShouldSaveState(context: context))
      case .shouldReload(let cast):
        try await cast(target).shouldReload(ShouldReload(context: context))
      case .willSuspend(let cast):
        try await cast(target).willSuspend(WillSuspend(context: context))
      case .didResume(let cast):
        try await cast(target).didResume(DidResume(context: context))
      case .didReceivePressure(let cast):
        try await cast(target).didReceivePressure(DidReceivePressure(context: context))
      case .checkHealth(let cast):
        try await cast(target).checkHealth(CheckHealth(context: context))
      case .willTerminate(let cast):
        try await cast(target).willTerminate(WillTerminate(context: context))
      case .wildcard(let cast):
        guard let notification = step.notification(context) else { return }
        try await cast(target).didReceive(notification)
      case .closure(let body): try await body(target, step, context)
      }
    }
  }
}

extension NotificationKind {
  package enum Direction: Sendable {
    /// Lower phases first.
    case up
    /// Higher phases first.
    case down
  }

  /// How a notification changes the state of the observers that receive it.
  enum Change: Sendable {
    case nothing
    /// It is delivered to observers in the second state, and moves them to the first.
    case state(LifecycleState, from: LifecycleState)
    case suspended(Bool)
  }

  /// The properties of a notification.
  package final class Row: Sendable {
    package let type: any LifecycleNotification.Type
    package let direction: Direction
    /// Whether a termination skips the rest of its delivery. Notifications on the way down are delivered to the end.
    let yields: Bool
    let change: Change
    /// The word in a timeline for a hook that completed: `saved`.
    let done: String
    /// The word in a timeline for the hook otherwise, as in `save failed`.
    let act: String
    /// Makes the notification with a context.
    package let make: @Sendable (LifecycleContext) -> any LifecycleNotification
    /// The hook that an observer's type declares; `nil` where it must be searched for.
    let declared: @Sendable (any LifecycleObserver.Type) -> _DeclaredHook?
    /// Searches for the hook, which is slow. The result is `nil` when the type has not adopted the protocol.
    let search: @Sendable (any LifecycleObserver.Type) -> Hook.Method?

    fileprivate init<N: _PackageNotification>(
      _ make: @escaping @Sendable (LifecycleContext) -> N, _ direction: Direction = .up,
      yields: Bool = true, done: String, act: String, changes change: Change = .nothing,
      declared: @escaping @Sendable (any LifecycleObserver.Type) -> _DeclaredHook? = { _ in nil },
      search: @escaping @Sendable (any LifecycleObserver.Type) -> Hook.Method?
    ) {
      type = N.self
      self.direction = direction
      self.yields = yields
      self.change = change
      self.done = done
      self.act = act
      self.make = make
      self.declared = declared
      self.search = search
    }
  }

  /// The rows, made once since steps read them often.
  private static let rows = allCases.map { $0.makeRow() }

  package var row: Row { Self.rows[rawValue] }

  /// The kind of a notification type; `nil` for a custom one.
  package init?(_ type: any LifecycleNotification.Type) {
    guard let kind = Self.allCases.first(where: { $0.row.type == type }) else { return nil }
    self = kind
  }
}
