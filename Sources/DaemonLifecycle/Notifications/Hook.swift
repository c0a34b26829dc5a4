// SPDX-License-Identifier: Apache-2.0
/// One observer's hook for one notification type: see `ObserverHooks` for how it is found.
package final class Hook: Sendable {
  /// Casts the target to its type. The cast is free and can't fail, since the target is the object whose type was
  /// opened when the hook was made (`ObserverEntry.target`).
  typealias Cast<Observer> = @Sendable (consuming any AnyObject & Sendable) -> Observer

  /// A closure that stays on its caller's executor: only the user's closure, which it calls, may have another.
  typealias Closure =
    nonisolated(nonsending) @Sendable (
      any AnyObject & Sendable, LifecycleStep, LifecycleContext
    ) async throws -> Void

  private let method: Method
  /// The type of notification that the hook is for; `nil` for a wildcard.
  let notification: ObjectIdentifier?

  private init(_ method: Method, for type: (any LifecycleNotification.Type)?) {
    self.method = method
    notification = type.map { ObjectIdentifier($0) }
  }

  /// Whether the hook is a method of the target, and so isolated to it when that is an actor.
  var isMethod: Bool {
    if case .closure = method { false } else { true }
  }

  /// Calls the hook with the entry's target and a step whose notification is of the hook's type. A method of an actor
  /// is called in its isolation, so that the hook begins in the same step in which it is marked as begun.
  @inline(__always)
  nonisolated(nonsending) func call(
    _ target: consuming any AnyObject & Sendable, _ step: LifecycleStep, _ context: LifecycleContext
  ) async throws {
    try await method.call(target, step, context)
  }

  // MARK: Methods

  /// The hooks that the type declares.
  static func declared(by type: any LifecycleObserver.Type) -> [Hook] {
    var hooks: [Hook] = []
    for kind in NotificationKind.allCases {
      let row = kind.row
      if let hook = row.declared(type) { hooks.append(Hook(hook.method, for: row.type)) }
    }
    if let wildcard = type._wildcardHook { hooks.append(Hook(wildcard.method, for: nil)) }
    return hooks
  }

  /// Searches for the hook for a kind or, for `nil`, for all, however it was adopted. The search is slow.
  static func search(_ type: any LifecycleObserver.Type, for kind: NotificationKind?) -> Hook? {
    let method =
      if let kind { kind.row.search(type) } else {
        (type as? any WildcardObserver.Type)?.wildcardHook
      }
    return method.map { Hook($0, for: kind?.row.type) }
  }

  /// The hook of an observer that has adopted none: it makes its launch fail.
  static func missing(_ type: any LifecycleObserver.Type) -> Hook {
    closure(for: DidFinishLaunching.self) { _ in throw LifecycleError.noHook("\(type)") }
  }

  // MARK: Closures

  /// Makes the hook of a closure that is bound to an owner, which is the target.
  package static func closure<Owner: AnyObject & Sendable, N: LifecycleNotification>(
    for type: N.Type, owner _: Owner.Type,
    _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { target, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(unsafeDowncast(target, to: Owner.self), notification)
    }
    return Hook(call, for: type)
  }

  static func closure<N: LifecycleNotification>(
    for type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { _, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(notification)
    }
    return Hook(call, for: type)
  }

  static func wildcard(
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { _, step, context in
      guard let notification = step.notification(context) else { return }
      try await body(notification)
    }
    return Hook(call, for: nil)
  }

  static let none = Hook(.closure { _, _, _ in }, for: nil)
}
