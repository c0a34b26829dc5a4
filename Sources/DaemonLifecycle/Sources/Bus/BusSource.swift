import Synchronization
import Systemd

/// What systemd and logind say over one bus, as inputs of the core.
///
/// Everything is asynchronous and happens on the listening thread: nothing waits for the bus, whether it
/// answers at once, after half a minute, or never.
final class BusSource: LifecycleSource, LifecycleSink {
  private let session: BusSession
  private let followers: [any BusFollower]
  private let inbox = BusInbox()

  init(_ address: BusAddress, followers: [any BusFollower]) {
    session = BusSession(address)
    self.followers = followers
  }

  var descriptors: [PolledDescriptor] {
    session.isClosed || session.fileDescriptor < 0
      ? [] : [PolledDescriptor(number: session.fileDescriptor)]
  }

  func open() throws(LifecycleError) {
    for follower in followers { follower.begin(on: session, inbox) }
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

  var asksForTime: Bool { false }

  func hear(_ fact: LifecycleFact) { for follower in followers { follower.hear(fact) } }
}

/// Follows one matter over a session.
protocol BusFollower: AnyObject, Sendable {
  /// Asks for what it needs. Answers and signals come on the listening thread and go into the inbox.
  func begin(on session: BusSession, _ inbox: BusInbox)
  /// Hears what the lifecycle does; on any thread.
  func hear(_ fact: LifecycleFact)
}

extension BusFollower {
  func hear(_: LifecycleFact) {}
}

/// What the followers have found out and the core has not taken yet.
final class BusInbox: Sendable {
  private let state = Mutex<(inputs: [LifecycleInput], lastComplaint: BusError?)>(([], nil))

  func put(_ input: LifecycleInput) { state.withLock { $0.inputs.append(input) } }

  /// Several matters share a bus: that it is away is said once.
  func complain(_ error: BusError, _ purpose: String) {
    if case .closed = error { return }
    state.withLock { state in
      guard state.lastComplaint != error else { return }
      state.lastComplaint = error
      state.inputs.append(.complaint("\(purpose): \(error)"))
    }
  }

  func take() -> [LifecycleInput] {
    state.withLock { state in
      defer { state.inputs = [] }
      return state.inputs
    }
  }
}
