// SPDX-License-Identifier: Apache-2.0
/// A fact from outside, or a request, which the registry turns into notifications.
package struct LifecycleEvent: Sendable {
  /// What has happened, or is asked for.
  package enum Kind: Sendable {
    /// The subject was started.
    case launch
    /// There is a reason for being in the background.
    case enterBackground(BackgroundReason)
    /// That reason is gone.
    case enterForeground(BackgroundReason)
    /// The machine is about to sleep.
    case suspend
    /// The machine has woken up, or will not sleep after all.
    case resume
    /// Deliver notifications, and stay where the daemon is.
    case errand(LifecycleErrand)
    /// A resource is short.
    case pressure(DidReceivePressure.Resource)
    /// A notification of a user's own.
    indirect case post(any CustomNotification)
    /// Ask the observers whether they are well, beside whatever is being delivered.
    case checkHealth
    /// End. A second and third one escalate when signals caused them.
    case terminate

    /// Save state and go on.
    public static let saveState = Self.errand(.saveState)
    /// Save state, then reload.
    public static let reload = Self.errand(.reload)
  }

  /// What has happened, or is asked for.
  package let kind: Kind
  /// Who or what reports it.
  package let cause: LifecycleCause

  package init(_ kind: Kind, cause: LifecycleCause = LifecycleCause(.api)) {
    self.kind = kind
    self.cause = cause
  }
}
