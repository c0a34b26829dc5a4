import Synchronization

/// One observer's hook for one notification type, found once, when the observer is added.
struct Hook: Sendable {
  typealias Body =
    @Sendable (isolated (any Actor)?, any AnyObject & Sendable, any LifecycleNotification)
    async throws -> Void

  /// What the hook is for; `nil` for a wildcard.
  let notification: ObjectIdentifier?
  /// Whether the hook is a method of the target, and so isolated to it when that is an actor.
  let isMethod: Bool
  /// Called with the entry's target and a notification of the hook's type. When `isMethod`, the isolation
  /// is the target, so that the hook begins in the same step in which it is marked as begun.
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
  /// when the hook was made (`ObserverEntry.target`), and a notification's type is checked when its hooks
  /// are looked up: both casts are free and can't fail.
  private static func method<O: AnyObject, N: LifecycleNotification>(
    of _: O.Type, for type: N.Type,
    _ body: @escaping @Sendable (isolated (any Actor)?, O, N) async throws -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: true) { isolation, target, notification in
      try await body(isolation, unsafeDowncast(target, to: O.self), notification as! N)
    }
  }

  private static func launch<O: LaunchObserver>(_: O) -> Hook {
    method(of: O.self, for: DidFinishLaunching.self) { _, target, notification in
      try await target.didFinishLaunching(notification)
    }
  }
  private static func foreground<O: ForegroundObserver>(_: O) -> Hook {
    method(of: O.self, for: WillEnterForeground.self) { _, target, notification in
      try await target.willEnterForeground(notification)
    }
  }
  private static func background<O: BackgroundObserver>(_: O) -> Hook {
    method(of: O.self, for: DidEnterBackground.self) { _, target, notification in
      try await target.didEnterBackground(notification)
    }
  }
  private static func state<O: StateObserver>(_: O) -> Hook {
    method(of: O.self, for: ShouldSaveState.self) { _, target, notification in
      try await target.shouldSaveState(notification)
    }
  }
  private static func reload<O: ReloadObserver>(_: O) -> Hook {
    method(of: O.self, for: ShouldReload.self) { _, target, notification in
      try await target.shouldReload(notification)
    }
  }
  private static func suspend<O: SuspendObserver>(_: O) -> Hook {
    method(of: O.self, for: WillSuspend.self) { _, target, notification in
      try await target.willSuspend(notification)
    }
  }
  private static func resume<O: ResumeObserver>(_: O) -> Hook {
    method(of: O.self, for: DidResume.self) { _, target, notification in
      try await target.didResume(notification)
    }
  }
  private static func pressure<O: PressureObserver>(_: O) -> Hook {
    method(of: O.self, for: DidReceivePressure.self) { _, target, notification in
      try await target.didReceivePressure(notification)
    }
  }
  private static func health<O: HealthObserver>(_: O) -> Hook {
    method(of: O.self, for: CheckHealth.self) { _, target, notification in
      try await target.checkHealth(notification)
    }
  }
  private static func termination<O: TerminationObserver>(_: O) -> Hook {
    method(of: O.self, for: WillTerminate.self) { _, target, notification in
      try await target.willTerminate(notification)
    }
  }
  private static func wildcard<O: WildcardObserver>(_: O) -> Hook {
    Hook(notification: nil, isMethod: true) { _, target, notification in
      try await unsafeDowncast(target, to: O.self).didReceive(notification)
    }
  }

  /// A closure bound to `Owner`: the target is the owner.
  static func closure<Owner: AnyObject & Sendable, N: LifecycleNotification>(
    for type: N.Type, owner _: Owner.Type,
    _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: false) { _, target, notification in
      try await body(unsafeDowncast(target, to: Owner.self), notification as! N)
    }
  }

  /// A closure of its own.
  static func closure<N: LifecycleNotification>(
    for type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> Hook {
    Hook(notification: ObjectIdentifier(type), isMethod: false) { _, _, notification in
      try await body(notification as! N)
    }
  }

  /// A closure for every notification.
  static func wildcard(
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> Hook {
    Hook(notification: nil, isMethod: false) { _, _, notification in try await body(notification) }
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
