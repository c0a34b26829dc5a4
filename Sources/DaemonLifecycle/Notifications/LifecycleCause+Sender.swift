// SPDX-License-Identifier: Apache-2.0
import CLinux

extension LifecycleCause {
  /// The sender of a signal, and how far that can be trusted.
  ///
  /// Only ``kernel`` and ``process(pid:uid:)`` can be trusted. Source: sigaction(2), rt_sigqueueinfo(2).
  package enum Sender: Sendable, Hashable, CustomStringConvertible {
    /// The kernel itself, as for Ctrl-C on a terminal.
    case kernel
    /// A process that used kill(2) or a similar call, and its real user, as the kernel reports them. Process -1 is
    /// outside of this process's pid namespace, as the process that stops a container.
    case process(pid: Int32, uid: UInt32)
    /// A process that queued the signal, with sigqueue(3) or a POSIX timer, and may claim any process ID and user.
    /// `nil` where nothing, or no possible process, is claimed.
    case queued(claimedPID: Int32?, claimedUID: UInt32?)
    /// Unknown: the signal arrived by way of Dispatch, since other code of the process has made a `DispatchSource` for
    /// it.
    case dispatch
    /// Unknown: another handler of the process has the signal, and has called ours.
    case passedOn

    /// The sender in words, "from" one that the kernel vouches for: `from the kernel`, `from pid 4242 uid 0`, `queued,
    /// claims pid 1 uid 0`, `by way of Dispatch`, `by way of another handler`.
    package var description: String {
      switch self {
      case .kernel: return "from the kernel"
      case .process(let pid, let uid):
        return "from \(pid < 0 ? "outside of the container," : "pid \(pid)") uid \(uid)"
      case .queued(let pid, let uid):
        let claims = [pid.map { "pid \($0)" }, uid.map { "uid \($0)" }].compactMap { $0 }
        return claims.isEmpty ? "queued" : "queued, claims \(claims.joined(separator: " "))"
      case .dispatch: return "by way of Dispatch"
      case .passedOn: return "by way of another handler"
      }
    }

    init(_ record: clinux_signal_record) {
      switch record.origin {
      case CLINUX_SENDER_KERNEL: self = .kernel
      case CLINUX_SENDER_PROCESS: self = .process(pid: record.pid, uid: record.uid)
      case CLINUX_SENDER_CLAIMED:
        self = .queued(claimedPID: record.pid == 0 ? nil : record.pid, claimedUID: record.uid)
      case CLINUX_SENDER_DISPATCH: self = .dispatch
      case CLINUX_SENDER_PASSED_ON: self = .passedOn
      default: self = .queued(claimedPID: nil, claimedUID: nil)
      }
    }
  }
}

extension LifecycleCause.Origin {
  /// Makes the origin of a signal from a process, or from the kernel if `pid` and `uid` are 0: for tests.
  package static func signal(
    _ signal: UnixSignal, pid: Int32, uid: UInt32
  ) -> Self {
    let isKernel = pid == 0 && uid == 0
    return .signal(signal, from: isKernel ? .kernel : .process(pid: pid, uid: uid), coalesced: 1)
  }
}
