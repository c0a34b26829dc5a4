public import DaemonLifecycle

/// A notification that crosses the border between a lifecycle and a `NotificationCenter`, in one direction.
///
/// Do not adopt it itself: adopt ``BridgedNotification`` for what goes out, or ``AdoptedNotification`` for what comes
/// in. No type can be both, since it has one `Direction`:
///
/// <!-- swift: not compiled, since the compiler refuses it -->
///
///     struct Echo: BridgedNotification, AdoptedNotification { … }   // does not compile
///
/// That is why the two never make a loop. What came in has no way out, as its type is not a bridged one; what went
/// out is not let in, as its value says what it is, under whatever name somebody posts it. So no chain of bridges has
/// more than one link, with any number of lifecycles and centres: only your own code can make a second one, by
/// posting something that it made itself.
public protocol DirectedNotification: LifecycleNotification {
  /// ``Outward`` or ``Inward``; the two protocols that refine this one say which.
  associatedtype Direction
}

/// The direction of what goes from a lifecycle to a `NotificationCenter`.
public enum Outward: Sendable {}

/// The direction of what comes from a `NotificationCenter` to a lifecycle.
public enum Inward: Sendable {}
