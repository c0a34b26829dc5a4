// SPDX-License-Identifier: Apache-2.0
/// The state of a daemon; it changes one step at a time.
public enum LifecycleState: Sendable, CaseIterable {
  /// Not started, or DidFinishLaunching has not begun.
  case launching
  /// Paused, or on the way up or down.
  case background
  /// At work.
  case foreground
  /// WillTerminate has been delivered.
  case terminated
}

/// A reason for a daemon to be in the background; it returns to the foreground when no reason is left.
public struct BackgroundReason: Sendable, Hashable {
  /// Its name in the status and the journal; two reasons with one name are one.
  public let name: String
  /// A reason of your own.
  public init(_ name: String) { self.name = name }

  /// An operator asked (SIGUSR1), until the operator takes it back (SIGUSR2).
  public static let `operator` = BackgroundReason("operator")
  /// The user of a user service has no active, unlocked session.
  public static let session = BackgroundReason("session")
  /// The machine sleeps.
  public static let suspend = BackgroundReason("suspend")
}
