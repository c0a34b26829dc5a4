// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Tells a stray kill(1) from a stop: a SIGTERM of a process that has no say in whether the service runs. See
/// `SystemdConfiguration.exitsWithFailureWhenKilled`.
struct KillRule: Sendable {
  /// How long the end of a daemon that seems to be killed waits for the service manager to say otherwise.
  static let patience = Duration.seconds(1)

  /// Who may end the daemon: the service manager, the process that has started it, and the daemon itself.
  let superiors: Set<Int32>
  /// Whether the service manager can be asked if it has a job that stops the service.
  let asksForJob: Bool

  /// A signal of somebody who may send it.
  func isOrder(_ cause: LifecycleCause) -> Bool {
    guard case .signal(_, let sender, _) = cause.origin, let pid = sender.knownPID else {
      return false
    }
    return superiors.contains(pid)
  }

  /// A SIGTERM of somebody else. A sender that can't be seen may be the service manager, so its signal is no kill.
  func isKill(_ cause: LifecycleCause) -> Bool {
    guard case .signal(.sigterm, let sender, _) = cause.origin, let pid = sender.knownPID else {
      return false
    }
    return !superiors.contains(pid)
  }
}

extension LifecycleCause.Sender {
  /// `nil` for the kernel, for a process outside of this one's pid namespace, and where nobody is named. A claim
  /// counts: whoever lies gets no more than the status of a stop.
  fileprivate var knownPID: Int32? {
    switch self {
    case .process(let pid, _) where pid > 0: pid
    case .queued(let pid?, _) where pid > 0: pid
    default: nil
    }
  }
}
