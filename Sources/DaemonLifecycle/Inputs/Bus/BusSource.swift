import DaemonSystemd
import Synchronization

/// What systemd and logind say over one bus, as inputs of the core.
///
/// Everything is asynchronous and happens on the listening thread: nothing waits for the bus, whether it
/// answers at once, after half a minute, or never.
final class BusSource: LifecycleSource, LifecycleSink {
  private let session: BusSession
  private let followers: [any BusFollower]
  private let inbox = BusInbox()
  /// What keeps the followers going.
  private let watches = Mutex<[any Sendable]>([])

  init(_ address: BusAddress, followers: [any BusFollower]) {
    // Where there is no bus at all, as in a container, an idle daemon is woken every ten minutes for it.
    var options = BusSession.Options()
    options.longestDelay = .seconds(600)
    session = BusSession(address, options: options)
    self.followers = followers
  }

  var descriptors: [PolledDescriptor] {
    session.isClosed || session.fileDescriptor < 0
      ? [] : [PolledDescriptor(number: session.fileDescriptor)]
  }

  func open() throws(LifecycleError) {
    watches.withLock { $0 = followers.flatMap { $0.begin(on: session, inbox) } }
    session.start()
  }

  func read(_: PolledDescriptor) -> [LifecycleInput] {
    session.process()
    return inbox.take()
  }

  @discardableResult func close() -> [LifecycleInput] {
    session.close()
    // What comes of the ending itself is no news.
    _ = inbox.take()
    return []
  }

  // MARK: What the lifecycle tells

  var isServiceManager: Bool { false }

  func receive(_ fact: LifecycleFact) { for follower in followers { follower.receive(fact) } }
}

/// Follows one matter over a session.
protocol BusFollower: AnyObject, Sendable {
  /// Asks for what it needs. Answers and signals come on the listening thread and go into the inbox, as long as what is
  /// returned is kept.
  func begin(on session: BusSession, _ inbox: BusInbox) -> [any Sendable]
  /// Receives what the lifecycle does; on any thread.
  func receive(_ fact: LifecycleFact)
}

extension BusFollower {
  func receive(_: LifecycleFact) {}
}

/// What the followers have found out and the core has not taken yet.
final class BusInbox: Sendable {
  private struct State {
    var inputs: [LifecycleInput] = []
    /// What is done without, by the reason for it: several matters share a bus, and make one line.
    var warnings: [BusError: [String]] = [:]
    /// What was said of each matter last, so that it is said once.
    var said: [String: BusError] = [:]
  }

  private let state = Mutex(State())

  func put(_ input: LifecycleInput) { state.withLock { $0.inputs.append(input) } }

  /// `matter` is what the daemon does without, as in "sleep of the machine".
  func warn(_ error: BusError, without matter: String) {
    if case .closed = error { return }
    state.withLock { state in
      guard state.said[matter] != error else { return }
      state.said[matter] = error
      state.warnings[error, default: []].append(matter)
    }
  }

  /// The daemon has what it did without: the next failure is reported again, whatever the reason.
  func settle(_ matter: String) { state.withLock { $0.said[matter] = nil } }

  func take() -> [LifecycleInput] {
    state.withLock { state in
      defer { (state.inputs, state.warnings) = ([], [:]) }
      return state.inputs
        + state.warnings.map { error, matters in
          // What the other side has said may be no sentence.
          let reason = "\(error)".hasSuffix(".") ? "\(error)" : "\(error)."
          return .warning(
            "\(reason) The daemon goes on without: \(matters.joined(separator: ", ")).")
        }
    }
  }
}
