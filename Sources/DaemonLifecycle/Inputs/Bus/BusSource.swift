// SPDX-License-Identifier: Apache-2.0
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

  init(_ address: BusAddress, followers: [any BusFollower]) {
    // Where there is no bus at all, as in a container, an idle daemon is woken every ten minutes for it.
    var options = BusSession.Options()
    options.longestDelay = .seconds(600)
    session = BusSession(address, options: options)
    self.followers = followers
    for follower in followers { follower.begin(on: session, inbox) }
  }

  var descriptors: [PolledDescriptor] {
    session.isClosed || session.fileDescriptor < 0
      ? [] : [PolledDescriptor(number: session.fileDescriptor)]
  }

  func open() throws(LifecycleError) {
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
  /// Says what it needs, before the session starts. Answers and signals come on the listening thread and go into the
  /// inbox. What it gives the session must hold neither this object nor the session.
  func begin(on session: BusSession, _ inbox: BusInbox)
  /// Receives what the lifecycle does; on any thread.
  func receive(_ fact: LifecycleFact)
}

extension BusFollower {
  func receive(_: LifecycleFact) {}
}

/// What the followers have found out and the core has not taken yet.
final class BusInbox: Sendable {
  /// A matter that the daemon does without, and why.
  private typealias Lack = (matter: String, reason: String)

  private struct State {
    var inputs: [LifecycleInput] = []
    /// Not taken yet.
    var warnings: [Lack] = []
    /// What was said of each matter last, so that it is said once.
    var said: [Lack] = []
  }

  private let state = Mutex(State())

  func put(_ input: LifecycleInput) { state.withLock { $0.inputs.append(input) } }

  /// `matter` is what the daemon does without, as in "sleep of the machine".
  func warn(_ error: BusError, without matter: String) {
    let lack = (matter, error.description)
    state.withLock { state in
      guard !state.said.contains(where: { $0 == lack }) else { return }
      state.said.removeAll { $0.matter == matter }
      state.said.append(lack)
      state.warnings.append(lack)
    }
  }

  /// The daemon has what it did without: the next failure is reported again, whatever the reason.
  func settle(_ matter: String) { state.withLock { $0.said.removeAll { $0.matter == matter } } }

  func take() -> [LifecycleInput] {
    state.withLock { state in
      defer { (state.inputs, state.warnings) = ([], []) }
      return state.inputs + Self.lines(state.warnings).map { .warning($0) }
    }
  }

  /// Several matters share a bus, and make one line.
  private static func lines(_ warnings: [Lack]) -> [String] {
    var reasons: [String] = []
    for lack in warnings where !reasons.contains(lack.reason) { reasons.append(lack.reason) }
    return reasons.map { reason in
      let matters = warnings.filter { $0.reason == reason }.map(\.matter).joined(separator: ", ")
      // What the other side has said may be no sentence.
      return "\(reason)\(reason.hasSuffix(".") ? "" : ".") The daemon goes on without: \(matters)."
    }
  }
}
