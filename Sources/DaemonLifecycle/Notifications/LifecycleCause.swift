// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// Why something happens: what a notification, a report and an exit carry.
public struct LifecycleCause: Sendable, CustomStringConvertible {
  /// Who or what asked for it.
  public enum Origin: Sendable {
    /// A signal, the sender of the last delivery, or the kernel if one of them was its own, and how many deliveries were
    /// taken together.
    case signal(UnixSignal, from: Sender, coalesced: Int)
    /// `start()` or `run`.
    case launch
    /// A call of a method of the subject.
    case api
    /// systemd or logind, over the bus: what it said.
    case bus(String)
    /// The kernel reports that a resource is short.
    case pressure(DidReceivePressure.Resource)
    /// A tick of the watchdog.
    case watchdog
    /// The body of `run` returned.
    case bodyReturned
    /// The body of `run` threw.
    case bodyFailed(any Error)
    /// The task that called `run` was cancelled.
    case callerCancelled
    /// A hook of the launch failed, and the configuration says that the daemon ends then.
    case launchFailed
    /// An observer was added late, or could not be told before: it hears what the others have heard.
    case lateObserver
    /// What a test, or a notification that was adopted from elsewhere, says.
    case other(String)
  }

  /// Behind a reference, since a cause goes through many hands.
  private final class Content: Sendable {
    let origin: Origin
    let errorText: String?

    init(_ origin: Origin, _ errorText: String?) {
      self.origin = origin
      self.errorText = errorText
    }
  }
  private let content: Content

  /// Who or what asked for it.
  public var origin: Origin { content.origin }
  /// What the error of `bodyFailed` says of itself, put into words where it was thrown.
  package var errorText: String? { content.errorText }

  /// A cause made by hand, for tests.
  public init(_ origin: Origin) { content = Content(origin, nil) }

  /// The body of `run` threw.
  init(_ failure: Failure) { content = Content(.bodyFailed(failure.error), failure.text) }

  /// The signal, when that was the cause.
  // Inlined where a hook compares it, it makes Swift 6.3.1 crash in a release build (CopyPropagation).
  @inline(never)
  public var signal: UnixSignal? {
    if case .signal(let signal, _, _) = origin { signal } else { nil }
  }

  /// Ctrl-C was pressed: the terminal's driver in the kernel sends SIGINT for it.
  var isKeyPress: Bool {
    if case .signal(.sigint, from: .kernel, _) = origin { true } else { false }
  }

  /// For a log line: `SIGUSR1 from pid 4242 uid 0`, or `Ctrl-C` for a SIGINT of the terminal's. Control characters of texts from elsewhere are escaped, as
  /// `VisibleText` of the product `DaemonSystemd` does.
  public var description: String { VisibleText.line(sentence) }

  private var sentence: String {
    switch origin {
    case .signal(let signal, .queued(let pid, let uid), let coalesced):
      "\(signal) \(Sender.queued(claimedPID: pid, claimedUID: uid))" + Self.times(coalesced)
    case .signal(_, _, let coalesced) where isKeyPress: "Ctrl-C" + Self.times(coalesced)
    case .signal(let signal, let sender, let coalesced):
      "\(signal) from \(sender)" + Self.times(coalesced)
    case .launch: "launch"
    case .api: "a call"
    case .bus(let fact): fact
    case .pressure(let resource): "\(resource) pressure"
    case .watchdog: "the watchdog"
    case .bodyReturned: "the body returned"
    case .bodyFailed(let error): "the body threw \(errorText ?? "\(error)")"
    case .callerCancelled: "the caller was cancelled"
    case .launchFailed: "the launch failed"
    case .lateObserver: "a late observer"
    case .other(let text): text
    }
  }

  private static func times(_ coalesced: Int) -> String {
    coalesced > 1 ? " (\(coalesced) times)" : ""
  }
}
