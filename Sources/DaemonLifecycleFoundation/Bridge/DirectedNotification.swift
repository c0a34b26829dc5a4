// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle

/// A notification that crosses the border between a lifecycle and a `NotificationCenter`, in one direction.
///
/// No type can be both a ``BridgedNotification``, which goes out, and an ``AdoptedNotification``, which comes in, since
/// it has one direction:
///
/// <!-- swift: not compiled, since the compiler refuses it -->
///
/// ```swift
/// struct Echo: BridgedNotification, CustomNotification, AdoptedNotification { … }   // does not compile
/// ```
///
/// That is why the two never make a loop. What came in has no way out, as its type is not a bridged one; what went
/// out is not let in, as its value says what it is, under whatever name somebody posts it. So no chain of bridges has
/// more than one link, with any number of lifecycles and centres: only your own code can make a second one, by
/// posting something that it made itself.
@_documentation(visibility: internal)
public protocol _DirectedNotification: LifecycleNotification {
  /// `_Outward` or `_Inward`; the two protocols that refine this one say which.
  associatedtype _Direction
}

/// The direction of what goes from a lifecycle to a `NotificationCenter`.
@_documentation(visibility: internal)
public enum _Outward: Sendable {}

/// The direction of what comes from a `NotificationCenter` to a lifecycle.
@_documentation(visibility: internal)
public enum _Inward: Sendable {}
