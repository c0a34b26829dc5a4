// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The source of events of systemd and logind over one bus.
///
/// Everything is asynchronous and happens on the listening thread: nothing waits for the bus, which may respond at
/// once, after half a minute, or never.
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
    // Results of the ending itself are ignored.
    _ = inbox.take()
    return []
  }

  // MARK: Facts of the lifecycle

  var isServiceManager: Bool { false }

  func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    for follower in followers { follower.receive(fact) }
    return nil
  }
}

/// Follows one matter over a session.
protocol BusFollower: AnyObject, Sendable {
  /// Registers its queries before the session starts. Replies and signals arrive on the listening thread, and are put
  /// into the inbox. The handlers must retain neither this object nor the session.
  func begin(on session: BusSession, _ inbox: BusInbox)
  /// Receives facts of the lifecycle, on any thread.
  func receive(_ fact: LifecycleFact)
}

extension BusFollower {
  func receive(_: LifecycleFact) {}
}

/// The inputs from followers that the core has not taken yet.
final class BusInbox: Sendable {
  /// A matter that is unavailable, and the reason.
  private typealias Lack = (matter: String, reason: String)

  private struct State {
    var inputs: [LifecycleInput] = []
    /// Not taken yet.
    var warnings: [Lack] = []
    /// The last warning of each matter, so that it is logged once.
    var said: [Lack] = []
  }

  private let state = Mutex(State())

  func put(_ input: LifecycleInput) { state.withLock { $0.inputs.append(input) } }

  /// Adds a warning; `matter` is what is unavailable, as in "sleep of the machine".
  func warn(_ error: BusError, without matter: String) {
    let lack = (matter, error.description)
    state.withLock { state in
      guard !state.said.contains(where: { $0 == lack }) else { return }
      state.said.removeAll { $0.matter == matter }
      state.said.append(lack)
      state.warnings.append(lack)
    }
  }

  /// Notes that a matter is available: its next failure is reported again, whatever the reason.
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
