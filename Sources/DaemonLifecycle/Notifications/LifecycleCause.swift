// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The cause of an event, such as a signal and its sender. Notifications, reports and exits have one.
public struct LifecycleCause: Sendable, Equatable, CustomStringConvertible {
  package enum Origin: Sendable, Equatable {
    /// A signal, its sender, and the number of deliveries that were merged. The sender is that of the last delivery, or
    /// the kernel if it sent one of them.
    case signal(UnixSignal, from: Sender, coalesced: Int)
    /// A call of `run` or `runAndExit`.
    case launch
    /// A call of a method, such as `pause(for:)`.
    case api
    /// A message of systemd or logind over the bus, in words.
    case bus(String)
    /// A report of the kernel that memory is short.
    case pressure
    /// A check for the watchdog.
    case watchdog
    /// Work threw: a sentence that names it and the error.
    case workFailed(String)
    /// The task that called `run` was cancelled.
    case callerCancelled
    /// A hook of the launch failed, which ends the daemon.
    case launchFailed
    /// An observer was added after the launch, or could not be notified before: it receives what the others have
    /// received.
    case lateObserver
    /// A text that a test or a notification adopted from elsewhere gives.
    case other(String)
  }

  /// The content is behind a reference, since causes are copied often.
  private final class Content: Sendable, Equatable {
    let origin: Origin
    let status: Int32?
    init(_ origin: Origin, status: Int32?) { (self.origin, self.status) = (origin, status) }
    static func == (a: Content, b: Content) -> Bool {
      (a.origin, a.status) == (b.origin, b.status)
    }
  }
  private let content: Content

  package var origin: Origin { content.origin }

  /// The status that the process exits with, where a call has given one.
  var status: Int32? { content.status }

  package init(_ origin: Origin, status: Int32? = nil) {
    content = Content(origin, status: status)
  }

  /// Work threw.
  init(_ failure: Failure, of name: String) {
    self.init(.workFailed("\(name) threw \(failure.text)"))
  }

  /// The signal, if one was the cause; else `nil`.
  // Inlined where a hook compares it, it makes Swift 6.3.1 crash in a release build (CopyPropagation).
  @inline(never)
  public var signal: UnixSignal? {
    if case .signal(let signal, _, _) = origin { signal } else { nil }
  }

  /// The process that sent the signal, according to the kernel: 0 is the kernel itself, and -1 a process outside of
  /// this one's pid namespace. `nil` without a signal, or where only the sender says who it is.
  @inline(never)
  public var senderPID: Int32? {
    switch origin {
    case .signal(_, .kernel, _): 0
    case .signal(_, .process(let pid, _), _): pid
    default: nil
    }
  }

  /// The real user of that process; `nil` in the same cases, and if the kernel sent it, as for Ctrl-C.
  @inline(never)
  public var senderUID: UInt32? {
    if case .signal(_, .process(_, let uid), _) = origin { uid } else { nil }
  }

  /// Whether Ctrl-C was pressed, for which the terminal's driver in the kernel sends SIGINT.
  var isKeyPress: Bool {
    if case .signal(.sigint, from: .kernel, _) = origin { true } else { false }
  }

  /// Whether the terminal was closed, for which its driver in the kernel sends SIGHUP, perhaps by way of a shell.
  var isHangUp: Bool {
    if case .signal(.sighup, from: .kernel, _) = origin { true } else { false }
  }

  /// The cause on one line for a log: `SIGUSR1 from pid 4242 uid 0`, or `Ctrl-C` for a SIGINT of the terminal. Control
  /// characters of texts from outside are escaped, as by `VisibleText` of the product `DaemonSystemd`.
  public var description: String { VisibleText.line(sentence) }

  private var sentence: String {
    switch origin {
    case .signal(_, _, let coalesced) where isKeyPress: "Ctrl-C" + Self.times(coalesced)
    case .signal where isHangUp: "SIGHUP: the terminal was closed"
    case .signal(let signal, let sender, let coalesced):
      "\(signal) \(sender)" + Self.times(coalesced)
    case .launch: "launch"
    case .api: "a call"
    case .bus(let text), .workFailed(let text), .other(let text): text
    case .pressure: "memory pressure"
    case .watchdog: "the watchdog"
    case .callerCancelled: "the caller was cancelled"
    case .launchFailed: "the launch failed"
    case .lateObserver: "a late observer"
    }
  }

  private static func times(_ coalesced: Int) -> String {
    coalesced > 1 ? " (\(coalesced) times)" : ""
  }
}

/// An error and its text, which is rendered where the error was thrown, since rendering it is user code.
struct Failure: Sendable {
  private let kept: ReleasePool.Kept
  let error: any Error
  let text: String
  /// That of an `ExitStatusError`.
  let exitStatus: Int32?
  /// Whether a body threw it after its requested cancellation.
  var isLate = false

  init(_ error: any Error) {
    (self.error, kept, text) = (error, ReleasePool.Kept(error), "\(error)")
    exitStatus = (error as? any ExitStatusError).map { Self.status($0.exitStatus) }
  }

  /// A status that says of a failure that it was one: of others exit(3) takes the last eight bits, and 256 would be 0.
  static func status(_ wanted: Int32) -> Int32 { 1...255 ~= wanted ? wanted : 1 }
}

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
