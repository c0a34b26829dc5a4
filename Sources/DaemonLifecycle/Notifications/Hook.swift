// SPDX-License-Identifier: Apache-2.0
/// A hook for one notification type: a closure's, or that of all observers of a type, which `TypeHooks` has.
package final class Hook: Sendable {
  /// Calls the hook of a target, which is of the type that the hook was made for, with a step whose notification is of
  /// the hook's type. It stays on its caller's executor: only what it calls may have another.
  typealias Method =
    nonisolated(nonsending) @Sendable (
      any AnyObject & Sendable, LifecycleStep, LifecycleContext
    ) async throws -> Void

  private let method: Method
  /// The type of notification that the hook is for; `nil` for all.
  let notification: ObjectIdentifier?
  /// The target as the actor that the hook is isolated to; `nil` where it is not isolated to its target.
  let asActor: (@Sendable (any AnyObject & Sendable) -> any Actor)?

  init(
    for type: (any LifecycleNotification.Type)?,
    asActor: (@Sendable (any AnyObject & Sendable) -> any Actor)? = nil, _ method: @escaping Method
  ) {
    self.method = method
    notification = type.map { ObjectIdentifier($0) }
    self.asActor = asActor
  }

  deinit { ReleasePool.release(method) }

  /// Calls the hook in its caller's isolation, so that an actor's begins in the same step in which it is marked as begun.
  @inline(__always)
  nonisolated(nonsending) func call(
    _ target: any AnyObject & Sendable, _ step: LifecycleStep, _ context: LifecycleContext
  ) async throws {
    try await method(target, step, context)
  }

  // MARK: Methods

  /// Searches for the hook of a type, wherever it was adopted: through all conformances of the program, for 20 µs, and
  /// as long once more for the hook of an actor.
  static func search(_ type: any LifecycleObserver.Type, for kind: NotificationKind) -> Hook? {
    guard let method = kind.row.search(type) else { return nil }
    return Hook(for: kind.row.type, asActor: (type as? any Actor.Type)?.downcast, method)
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
    Hook(for: type) { target, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(unsafeDowncast(target, to: Owner.self), notification)
    }
  }

  static func closure<N: LifecycleNotification>(
    for type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> Hook {
    Hook(for: type) { _, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(notification)
    }
  }

  static func wildcard(
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> Hook {
    Hook(for: nil) { _, step, context in
      guard let notification = step.notification(context) else { return }
      try await body(notification)
    }
  }
}

extension LifecycleObserver {
  /// Casts to this type. It is free and can't fail: a hook is called with an object of the type that it was made for.
  static func cast(_ target: any AnyObject & Sendable) -> Self {
    unsafeDowncast(target, to: Self.self)
  }
}

extension Actor {
  fileprivate static var downcast: @Sendable (any AnyObject & Sendable) -> any Actor {
    { unsafeDowncast($0, to: Self.self) }
  }
}
