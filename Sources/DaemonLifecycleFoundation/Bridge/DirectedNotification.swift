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
/// Therefore bridges and adoptions can't form a loop. The type of an adopted notification is not a bridged one, so it
/// is not posted; a bridged value is recognized by its type, under any name, and is not adopted. So a notification
/// crosses at most once, with any number of lifecycles and centres. Only custom code can send it back, by posting a new
/// value.
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
