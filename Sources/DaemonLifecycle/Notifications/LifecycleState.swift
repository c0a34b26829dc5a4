// SPDX-License-Identifier: Apache-2.0
/// The state of a daemon; it changes one step at a time.
public enum LifecycleState: Sendable {
  /// Not started, or DidFinishLaunching has not begun.
  case launching
  /// Paused, or between the launch and the foreground, or about to terminate.
  case background
  /// Working.
  case foreground
  /// WillTerminate has been delivered.
  case terminated
}

/// A reason for a daemon to be in the background; it returns to the foreground when no reason is left.
public struct BackgroundReason: Sendable, Hashable {
  /// The name in the status and the journal. Two reasons with the same name are equal.
  public let name: String
  /// Makes a custom reason.
  public init(_ name: String) { self.name = name }

  /// The operator's reason: SIGUSR1 adds it, SIGUSR2 removes it.
  public static let `operator` = BackgroundReason("operator")
  /// The machine's: it sleeps, or is about to.
  public static let sleep = BackgroundReason("sleep")
}
