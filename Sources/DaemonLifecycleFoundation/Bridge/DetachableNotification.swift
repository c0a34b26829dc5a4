import DaemonLifecycle

/// A notification of the package's, which knows the hook that it was made for.
protocol DetachableNotification: ContextualNotification {
  /// The same with a context that never becomes stale, for those who hear of it when the hook is over.
  func detached() -> Self
}

extension DetachableNotification {
  var detachedContext: LifecycleContext { LifecycleContext(cause: cause, time: time) }
}

extension DidFinishLaunching: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension WillEnterForeground: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension DidEnterBackground: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension ShouldSaveState: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension ShouldReload: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension WillSuspend: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension DidResume: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension DidReceivePressure: DetachableNotification {
  func detached() -> Self { Self(resource: resource, context: detachedContext) }
}
extension CheckHealth: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
extension WillTerminate: DetachableNotification {
  func detached() -> Self { Self(context: detachedContext) }
}
