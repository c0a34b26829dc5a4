import Synchronization

/// One observer's hook for one notification type, found once, when the observer is added.
struct Hook: Sendable {
  typealias Body =
    @Sendable (isolated (any Actor)?, any AnyObject & Sendable, LifecycleStep, LifecycleContext)
    async throws -> Void

  /// What the hook is for; `nil` for a wildcard.
  let notification: ObjectIdentifier?
  /// Whether the hook is a method of the target, and so isolated to it when that is an actor.
  let isMethod: Bool
  /// Called with the entry's target and a step whose notification is of the hook's type. When `isMethod`, the
  /// isolation is the target, so that the hook begins in the same step in which it is marked as begun.
  let body: Body
  let memory = HookMemory()

  /// All hooks that `observer` has adopted.
  static func hooks(of observer: some LifecycleObserver) -> [Hook] {
    var hooks: [Hook] = []
    if let observer = observer as? any LaunchObserver { hooks.append(launch(observer)) }
    if let observer = observer as? any ForegroundObserver { hooks.append(foreground(observer)) }
    if let observer = observer as? any BackgroundObserver { hooks.append(background(observer)) }
    if let observer = observer as? any StateObserver { hooks.append(state(observer)) }
    if let observer = observer as? any ReloadObserver { hooks.append(reload(observer)) }
    if let observer = observer as? any SuspendObserver { hooks.append(suspend(observer)) }
    if let observer = observer as? any ResumeObserver { hooks.append(resume(observer)) }
    if let observer = observer as? any PressureObserver { hooks.append(pressure(observer)) }
    if let observer = observer as? any HealthObserver { hooks.append(health(observer)) }
    if let observer = observer as? any TerminationObserver { hooks.append(termination(observer)) }
    if let observer = observer as? any WildcardObserver { hooks.append(wildcard(observer)) }
    return hooks
  }

  /// The method of a class `O`. The target given to the body is the very object whose type was opened
  /// when the hook was made (`ObserverEntry.target`): the cast is free and can't fail.
  private static func method<O: AnyObject, N: LifecycleNotification>(
    of _: O.Type, for type: N.Type,
    _ body:
      @escaping @Sendable (isolated (any Actor)?, O, LifecycleStep, LifecycleContext) async throws
      -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: true) {
      try await body($0, unsafeDowncast($1, to: O.self), $2, $3)
    }
  }

  private static func launch<O: LaunchObserver>(_: O) -> Hook {
    method(of: O.self, for: DidFinishLaunching.self) { _, target, step, context in
      try await target.didFinishLaunching(step.posted() ?? DidFinishLaunching(context: context))
    }
  }
  private static func foreground<O: ForegroundObserver>(_: O) -> Hook {
    method(of: O.self, for: WillEnterForeground.self) { _, target, step, context in
      try await target.willEnterForeground(step.posted() ?? WillEnterForeground(context: context))
    }
  }
  private static func background<O: BackgroundObserver>(_: O) -> Hook {
    method(of: O.self, for: DidEnterBackground.self) { _, target, step, context in
      try await target.didEnterBackground(step.posted() ?? DidEnterBackground(context: context))
    }
  }
  private static func state<O: StateObserver>(_: O) -> Hook {
    method(of: O.self, for: ShouldSaveState.self) { _, target, step, context in
      try await target.shouldSaveState(step.posted() ?? ShouldSaveState(context: context))
    }
  }
  private static func reload<O: ReloadObserver>(_: O) -> Hook {
    method(of: O.self, for: ShouldReload.self) { _, target, step, context in
      try await target.shouldReload(step.posted() ?? ShouldReload(context: context))
    }
  }
  private static func suspend<O: SuspendObserver>(_: O) -> Hook {
    method(of: O.self, for: WillSuspend.self) { _, target, step, context in
      try await target.willSuspend(step.posted() ?? WillSuspend(context: context))
    }
  }
  private static func resume<O: ResumeObserver>(_: O) -> Hook {
    method(of: O.self, for: DidResume.self) { _, target, step, context in
      try await target.didResume(step.posted() ?? DidResume(context: context))
    }
  }
  private static func pressure<O: PressureObserver>(_: O) -> Hook {
    method(of: O.self, for: DidReceivePressure.self) { _, target, step, context in
      guard let notification = step.notification(context, as: DidReceivePressure.self) else {
        return
      }
      try await target.didReceivePressure(notification)
    }
  }
  private static func health<O: HealthObserver>(_: O) -> Hook {
    method(of: O.self, for: CheckHealth.self) { _, target, step, context in
      try await target.checkHealth(step.posted() ?? CheckHealth(context: context))
    }
  }
  private static func termination<O: TerminationObserver>(_: O) -> Hook {
    method(of: O.self, for: WillTerminate.self) { _, target, step, context in
      try await target.willTerminate(step.posted() ?? WillTerminate(context: context))
    }
  }
  private static func wildcard<O: WildcardObserver>(_: O) -> Hook {
    Hook(notification: nil, isMethod: true) { _, target, step, context in
      guard let notification = step.notification(context) else { return }
      try await unsafeDowncast(target, to: O.self).didReceive(notification)
    }
  }

  /// A closure bound to `Owner`: the target is the owner.
  static func closure<Owner: AnyObject & Sendable, N: LifecycleNotification>(
    for type: N.Type, owner _: Owner.Type,
    _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: false) { _, target, step, context in
      guard let notification = step.notification(context, as: N.self) else { return }
      try await body(unsafeDowncast(target, to: Owner.self), notification)
    }
  }

  /// A closure of its own.
  static func closure<N: LifecycleNotification>(
    for type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: false) { _, _, step, context in
      guard let notification = step.notification(context, as: N.self) else { return }
      try await body(notification)
    }
  }

  /// A closure for every notification.
  static func wildcard(
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> Hook {
    Hook(notification: nil, isMethod: false) { _, _, step, context in
      guard let notification = step.notification(context) else { return }
      try await body(notification)
    }
  }
}

/// What earlier calls have taught about a hook.
final class HookMemory: Sendable {
  private let completedInPlace = Atomic<Bool>(false)

  /// It once ran from beginning to end on the thread that called it, so it is not isolated to the main
  /// actor.
  var staysInPlace: Bool {
    get { completedInPlace.load(ordering: .relaxed) }
    set { completedInPlace.store(newValue, ordering: .relaxed) }
  }
}
