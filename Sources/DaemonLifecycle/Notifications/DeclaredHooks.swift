// SPDX-License-Identifier: Apache-2.0
// The hooks of a type, as the compiler finds them. A search at run time goes through all conformances of the program
// and takes 20 µs for each type and protocol.
//
// `LifecycleObserver` requires a declaration for each hook. The default is that there is none. The hook's protocol has
// a more specific default, which the compiler chooses where the type that adopts `LifecycleObserver` is known to adopt
// that protocol too. It does not know of adoptions in a subclass, in another module, or for some type arguments only:
// `LateHooks` finds those.

/// For the package's own use.
public struct _DeclaredHook: Sendable {
  let method: Hook.Method
  fileprivate init(_ method: Hook.Method) { self.method = method }
}

/// For the package's own use.
public struct _ActorCast: Sendable {
  let cast: @Sendable (any AnyObject & Sendable) -> any Actor
}

extension LifecycleObserver {
  public static var _launchHook: _DeclaredHook? { nil }
  public static var _foregroundHook: _DeclaredHook? { nil }
  public static var _backgroundHook: _DeclaredHook? { nil }
  public static var _stateHook: _DeclaredHook? { nil }
  public static var _reloadHook: _DeclaredHook? { nil }
  public static var _suspendHook: _DeclaredHook? { nil }
  public static var _resumeHook: _DeclaredHook? { nil }
  public static var _pressureHook: _DeclaredHook? { nil }
  public static var _healthHook: _DeclaredHook? { nil }
  public static var _terminationHook: _DeclaredHook? { nil }
  public static var _wildcardHook: _DeclaredHook? { nil }
  public static var _actorCast: _ActorCast? { nil }
}

extension LifecycleObserver where Self: Actor {
  /// Makes the cast to this type, which is free: the target is an object of this type.
  public static var _actorCast: _ActorCast? { _ActorCast { unsafeDowncast($0, to: Self.self) } }
}

extension LaunchObserver {
  static var launchHook: Hook.Method { .didFinishLaunching { unsafeDowncast($0, to: Self.self) } }
  public static var _launchHook: _DeclaredHook? { _DeclaredHook(launchHook) }
}

extension ForegroundObserver {
  static var foregroundHook: Hook.Method {
    .willEnterForeground { unsafeDowncast($0, to: Self.self) }
  }
  public static var _foregroundHook: _DeclaredHook? { _DeclaredHook(foregroundHook) }
}

extension BackgroundObserver {
  static var backgroundHook: Hook.Method {
    .didEnterBackground { unsafeDowncast($0, to: Self.self) }
  }
  public static var _backgroundHook: _DeclaredHook? { _DeclaredHook(backgroundHook) }
}

extension StateObserver {
  static var stateHook: Hook.Method { .shouldSaveState { unsafeDowncast($0, to: Self.self) } }
  public static var _stateHook: _DeclaredHook? { _DeclaredHook(stateHook) }
}

extension ReloadObserver {
  static var reloadHook: Hook.Method { .shouldReload { unsafeDowncast($0, to: Self.self) } }
  public static var _reloadHook: _DeclaredHook? { _DeclaredHook(reloadHook) }
}

extension SuspendObserver {
  static var suspendHook: Hook.Method { .willSuspend { unsafeDowncast($0, to: Self.self) } }
  public static var _suspendHook: _DeclaredHook? { _DeclaredHook(suspendHook) }
}

extension ResumeObserver {
  static var resumeHook: Hook.Method { .didResume { unsafeDowncast($0, to: Self.self) } }
  public static var _resumeHook: _DeclaredHook? { _DeclaredHook(resumeHook) }
}

extension PressureObserver {
  static var pressureHook: Hook.Method { .didReceivePressure { unsafeDowncast($0, to: Self.self) } }
  public static var _pressureHook: _DeclaredHook? { _DeclaredHook(pressureHook) }
}

extension HealthObserver {
  static var healthHook: Hook.Method { .checkHealth { unsafeDowncast($0, to: Self.self) } }
  public static var _healthHook: _DeclaredHook? { _DeclaredHook(healthHook) }
}

extension TerminationObserver {
  static var terminationHook: Hook.Method { .willTerminate { unsafeDowncast($0, to: Self.self) } }
  public static var _terminationHook: _DeclaredHook? { _DeclaredHook(terminationHook) }
}

extension WildcardObserver {
  static var wildcardHook: Hook.Method { .wildcard { unsafeDowncast($0, to: Self.self) } }
  public static var _wildcardHook: _DeclaredHook? { _DeclaredHook(wildcardHook) }
}
