// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The rule that distinguishes a stray kill(1) from a stop: a SIGTERM of a process that does not control the service.
/// See `SystemdConfiguration.exitsWithFailureWhenKilled`.
struct KillRule: Sendable {
  /// How long the exit of a daemon that seems to be killed waits for the service manager's reply.
  static let patience = Duration.seconds(1)

  /// The processes whose signals are stops: the service manager, the parent, and the daemon itself.
  let superiors: Set<Int32>
  /// Whether the job that stops the service can be read from the service manager.
  let asksForJob: Bool

  /// Whether the cause is a signal of one of the superiors.
  func isOrder(_ cause: LifecycleCause) -> Bool {
    guard case .signal(_, let sender, _) = cause.origin, let pid = sender.knownPID else {
      return false
    }
    return superiors.contains(pid)
  }

  /// Whether the cause is a SIGTERM of another process. An unknown sender may be the service manager, so its signal is
  /// no kill.
  func isKill(_ cause: LifecycleCause) -> Bool {
    guard case .signal(.sigterm, let sender, _) = cause.origin, let pid = sender.knownPID else {
      return false
    }
    return !superiors.contains(pid)
  }
}

extension LifecycleCause.Sender {
  /// The sender's process ID; `nil` for the kernel, for a process outside of this one's pid namespace, and when none is
  /// given. A claimed ID is accepted: a false one has no further effect than the status of a stop.
  fileprivate var knownPID: Int32? {
    switch self {
    case .process(let pid, _) where pid > 0: pid
    case .queued(let pid?, _) where pid > 0: pid
    default: nil
    }
  }
}
