import Synchronization

/// One observer's hook for one notification type, found once, when the observer is added.
final class Hook: Sendable {
  /// The target as what it is; the cast is free and can't fail, since the target is the very object whose type was
  /// opened when the hook was made (`ObserverEntry.target`).
  typealias Cast<Observer> = @Sendable (consuming any AnyObject & Sendable) -> Observer

  /// Stays on its caller's executor: only the user's closure, which it calls, may have one of its own.
  private typealias Closure =
    nonisolated(nonsending) @Sendable (
      any AnyObject & Sendable, LifecycleStep, LifecycleContext
    ) async throws -> Void

  /// Each kind of method by itself: to call it through a closure would cost as much again as a short hook.
  private enum Method: Sendable {
    case launch(Cast<any LaunchObserver>)
    case foreground(Cast<any ForegroundObserver>)
    case background(Cast<any BackgroundObserver>)
    case state(Cast<any StateObserver>)
    case reload(Cast<any ReloadObserver>)
    case suspend(Cast<any SuspendObserver>)
    case resume(Cast<any ResumeObserver>)
    case pressure(Cast<any PressureObserver>)
    case health(Cast<any HealthObserver>)
    case termination(Cast<any TerminationObserver>)
    case wildcard(Cast<any WildcardObserver>)
    /// A closure of the user's; given the owner that it is bound to, or what stands for one.
    case closure(Closure)
  }

  private let method: Method
  /// What the hook is for; `nil` for a wildcard.
  let notification: ObjectIdentifier?
  /// What earlier calls have taught.
  private let completedInPlace = Atomic<Bool>(false)

  private init(_ method: Method, for type: (any LifecycleNotification.Type)?) {
    self.method = method
    notification = type.map { ObjectIdentifier($0) }
  }

  /// Whether the hook is a method of the target, and so isolated to it when that is an actor.
  var isMethod: Bool {
    if case .closure = method { false } else { true }
  }

  /// It once ran from beginning to end on the thread that called it, so it is not isolated to the main
  /// actor.
  var completesSynchronously: Bool {
    get { completedInPlace.load(ordering: .relaxed) }
    set { completedInPlace.store(newValue, ordering: .relaxed) }
  }

  /// Calls it with the entry's target and a step whose notification is of the hook's type. A method of an actor is
  /// called in its isolation, so that the hook begins in the same step in which it is marked as begun.
  @inline(__always)
  nonisolated(nonsending) func call(
    _ target: consuming any AnyObject & Sendable, _ step: LifecycleStep, _ context: LifecycleContext
  ) async throws {
    switch method {
    case .launch(let cast):
      try await cast(target).didFinishLaunching(
        step.posted() ?? DidFinishLaunching(context: context))
    case .foreground(let cast):
      try await cast(target).willEnterForeground(
        step.posted() ?? WillEnterForeground(context: context))
    case .background(let cast):
      try await cast(target).didEnterBackground(
        step.posted() ?? DidEnterBackground(context: context))
    case .state(let cast):
      try await cast(target).shouldSaveState(step.posted() ?? ShouldSaveState(context: context))
    case .reload(let cast):
      try await cast(target).shouldReload(step.posted() ?? ShouldReload(context: context))
    case .suspend(let cast):
      try await cast(target).willSuspend(step.posted() ?? WillSuspend(context: context))
    case .resume(let cast):
      try await cast(target).didResume(step.posted() ?? DidResume(context: context))
    case .health(let cast):
      try await cast(target).checkHealth(step.posted() ?? CheckHealth(context: context))
    case .termination(let cast):
      try await cast(target).willTerminate(step.posted() ?? WillTerminate(context: context))
    case .pressure(let cast):
      guard let notification: DidReceivePressure = step.notification(context) else { return }
      try await cast(target).didReceivePressure(notification)
    case .wildcard(let cast):
      guard let notification = step.notification(context) else { return }
      try await cast(target).didReceive(notification)
    case .closure(let body): try await body(target, step, context)
    }
  }

  // MARK: Methods

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

  private static func launch<O: LaunchObserver>(_: O) -> Hook {
    Hook(.launch { unsafeDowncast($0, to: O.self) }, for: DidFinishLaunching.self)
  }
  private static func foreground<O: ForegroundObserver>(_: O) -> Hook {
    Hook(.foreground { unsafeDowncast($0, to: O.self) }, for: WillEnterForeground.self)
  }
  private static func background<O: BackgroundObserver>(_: O) -> Hook {
    Hook(.background { unsafeDowncast($0, to: O.self) }, for: DidEnterBackground.self)
  }
  private static func state<O: StateObserver>(_: O) -> Hook {
    Hook(.state { unsafeDowncast($0, to: O.self) }, for: ShouldSaveState.self)
  }
  private static func reload<O: ReloadObserver>(_: O) -> Hook {
    Hook(.reload { unsafeDowncast($0, to: O.self) }, for: ShouldReload.self)
  }
  private static func suspend<O: SuspendObserver>(_: O) -> Hook {
    Hook(.suspend { unsafeDowncast($0, to: O.self) }, for: WillSuspend.self)
  }
  private static func resume<O: ResumeObserver>(_: O) -> Hook {
    Hook(.resume { unsafeDowncast($0, to: O.self) }, for: DidResume.self)
  }
  private static func pressure<O: PressureObserver>(_: O) -> Hook {
    Hook(.pressure { unsafeDowncast($0, to: O.self) }, for: DidReceivePressure.self)
  }
  private static func health<O: HealthObserver>(_: O) -> Hook {
    Hook(.health { unsafeDowncast($0, to: O.self) }, for: CheckHealth.self)
  }
  private static func termination<O: TerminationObserver>(_: O) -> Hook {
    Hook(.termination { unsafeDowncast($0, to: O.self) }, for: WillTerminate.self)
  }
  private static func wildcard<O: WildcardObserver>(_: O) -> Hook {
    Hook(.wildcard { unsafeDowncast($0, to: O.self) }, for: nil)
  }

  // MARK: Closures

  /// A closure bound to `Owner`: the target is the owner.
  static func closure<Owner: AnyObject & Sendable, N: LifecycleNotification>(
    for type: N.Type, owner _: Owner.Type,
    _ body: @escaping @Sendable (Owner, N) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { target, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(unsafeDowncast(target, to: Owner.self), notification)
    }
    return Hook(call, for: type)
  }

  /// A closure of its own.
  static func closure<N: LifecycleNotification>(
    for type: N.Type, _ body: @escaping @Sendable (N) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { _, step, context in
      guard let notification: N = step.notification(context) else { return }
      try await body(notification)
    }
    return Hook(call, for: type)
  }

  /// A closure for every notification.
  static func wildcard(
    _ body: @escaping @Sendable (any LifecycleNotification) async throws -> Void
  ) -> Hook {
    let call: Method = .closure { _, step, context in
      guard let notification = step.notification(context) else { return }
      try await body(notification)
    }
    return Hook(call, for: nil)
  }

  /// Is never called.
  static let none = Hook(.closure { _, _, _ in }, for: nil)
}
