// SPDX-License-Identifier: Apache-2.0
/// An external event or a request, which the registry turns into notifications.
package struct LifecycleEvent: Sendable {
  /// The kind of event or request.
  package enum Kind: Sendable {
    /// The subject was started.
    case launch
    /// A reason for being in the background is added.
    case enterBackground(BackgroundReason)
    /// A reason for being in the background is removed.
    case enterForeground(BackgroundReason)
    /// The machine is about to sleep.
    case suspend
    /// The machine has woken up, or will not sleep after all.
    case resume
    /// Deliver notifications without a change of state.
    case errand(LifecycleErrand)
    /// Memory is short.
    case pressure
    /// A custom notification is posted.
    indirect case post(any CustomNotification)
    /// Check the observers' health, beside other deliveries.
    case checkHealth
    /// Terminate. A second and a third one escalate if signals caused them.
    case terminate

    /// Save state.
    public static let saveState = Self.errand(.saveState)
    /// Save state, then reload the configuration.
    public static let reload = Self.errand(.reload)
  }

  /// The kind of event or request.
  package let kind: Kind
  /// The cause of the event.
  package let cause: LifecycleCause

  package init(_ kind: Kind, cause: LifecycleCause = LifecycleCause(.api)) {
    self.kind = kind
    self.cause = cause
  }
}
