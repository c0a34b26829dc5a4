// SPDX-License-Identifier: Apache-2.0
/// The notifications that the package delivers: the row of each, and the call of its hook. Its type and its protocol
/// are in `LifecycleNotification.swift` and `LifecycleObserver.swift`.
package enum NotificationKind: Int, CaseIterable, Sendable {
  case didFinishLaunching, willEnterForeground, didEnterBackground, shouldSaveState, shouldReload
  case willSleep, didWakeUp, didReceivePressure, checkHealth, willTerminate

  private func makeRow() -> Row {
    switch self {
    case .didFinishLaunching:
      Row(
        DidFinishLaunching.init, done: "launched", noun: "launch",
        changes: .state(.background, from: .launching)
      ) { ($0 as? any LaunchObserver.Type)?.hook }
    case .willEnterForeground:
      Row(
        WillEnterForeground.init, done: "in the foreground", noun: "foreground",
        changes: .state(.foreground, from: .background)
      ) { ($0 as? any ForegroundObserver.Type)?.hook }
    case .didEnterBackground:
      Row(
        DidEnterBackground.init, .down, yields: false, done: "paused", noun: "pause",
        changes: .state(.background, from: .foreground)
      ) { ($0 as? any BackgroundObserver.Type)?.hook }
    case .shouldSaveState:
      Row(ShouldSaveState.init, .down, yields: false, done: "saved", noun: "save") {
        ($0 as? any SaveObserver.Type)?.hook
      }
    case .shouldReload:
      Row(ShouldReload.init, done: "reloaded", noun: "reload") {
        ($0 as? any ReloadObserver.Type)?.hook
      }
    case .willSleep:
      Row(
        WillSleep.init, .down, done: "ready to sleep", noun: "sleep", changes: .asleep(true)
      ) { ($0 as? any SleepObserver.Type)?.hook }
    case .didWakeUp:
      Row(DidWakeUp.init, done: "woken up", noun: "wake-up", changes: .asleep(false)) {
        ($0 as? any WakeUpObserver.Type)?.hook
      }
    case .didReceivePressure:
      Row(DidReceivePressure.init, done: "pressure relieved", noun: "pressure") {
        ($0 as? any PressureObserver.Type)?.hook
      }
    case .checkHealth:
      Row(CheckHealth.init, done: "healthy", noun: "check") {
        ($0 as? any HealthObserver.Type)?.hook
      }
    case .willTerminate:
      Row(WillTerminate.init, .down, yields: false, done: "terminated", noun: "terminate") {
        ($0 as? any TerminationObserver.Type)?.hook
      }
    }
  }
}

// MARK: Calls

extension LaunchObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).didFinishLaunching(DidFinishLaunching(context: $2)) }
  }
}

extension ForegroundObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).willEnterForeground(WillEnterForeground(context: $2)) }
  }
}

extension BackgroundObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).didEnterBackground(DidEnterBackground(context: $2)) }
  }
}

extension SaveObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).shouldSaveState(ShouldSaveState(context: $2)) }
  }
}

extension ReloadObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).shouldReload(ShouldReload(context: $2)) }
  }
}

extension SleepObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).willSleep(WillSleep(context: $2)) }
  }
}

extension WakeUpObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).didWakeUp(DidWakeUp(context: $2)) }
  }
}

extension PressureObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).didReceivePressure(DidReceivePressure(context: $2)) }
  }
}

extension HealthObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).checkHealth(CheckHealth(context: $2)) }
  }
}

extension TerminationObserver {
  fileprivate static var hook: Hook.Method {
    { try await cast($0).willTerminate(WillTerminate(context: $2)) }
  }
}

// MARK: Rows

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
    case asleep(Bool)
    /// Work that runs throughout begins, or ends.
    case work(begins: Bool)
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
    let noun: String
    /// Makes the notification with a context.
    package let make: @Sendable (LifecycleContext) -> any LifecycleNotification
    /// Searches for the hook, which is slow. The result is `nil` when the type has not adopted the protocol.
    let search: @Sendable (any LifecycleObserver.Type) -> Hook.Method?

    fileprivate init<N: StandardNotification>(
      _ make: @escaping @Sendable (LifecycleContext) -> N, _ direction: Direction = .up,
      yields: Bool = true, done: String, noun: String, changes change: Change = .nothing,
      search: @escaping @Sendable (any LifecycleObserver.Type) -> Hook.Method?
    ) {
      type = N.self
      self.direction = direction
      self.yields = yields
      self.change = change
      self.done = done
      self.noun = noun
      self.make = make
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
