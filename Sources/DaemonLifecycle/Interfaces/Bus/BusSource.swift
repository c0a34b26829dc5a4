// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The source of inputs from systemd and logind over one bus.
///
/// Everything is asynchronous and happens on the listening thread: nothing waits for the bus, which may respond at
/// once, after half a minute, or never.
final class BusSource: LifecyclePart {
  private struct Bus {
    let connection: BusConnection
    let inbox: BusInbox
    let sleep: SleepFollower
  }

  private let asksForUnitJob: Bool
  /// Held by the listening thread while it processes messages, and for a moment by a thread that passes a fact on.
  private let bus: Mutex<Bus>

  /// - Parameters:
  ///   - inputs: The values to read over this bus.
  ///   - userManager: The system's unit whose limit for a stop is read, too; `nil` for none.
  ///   - options: With the default, an idle daemon without any bus, as in a container, is woken every ten minutes to try again.
  init(
    _ address: BusAddress, _ inputs: [BusInput], userManager: String? = nil,
    options: BusConnection.Options = BusSource.options
  ) {
    asksForUnitJob = inputs.contains { $0.kind == .unitJob }
    let inbox = BusInbox()
    let sleep = SleepFollower(inbox)
    var requests = inputs.map { $0.request(inbox, sleep) }
    if let userManager { requests.append(.stopTimeout(inbox, ofUserManager: userManager)) }
    let connection = BusConnection(address, requests, options: options)
    bus = Mutex(Bus(connection: connection, inbox: inbox, sleep: sleep))
  }

  private static var options: BusConnection.Options {
    var options = BusConnection.Options()
    options.longestDelay = .seconds(600)
    return options
  }

  var descriptors: [PolledDescriptor] {
    let number = bus.withLock { $0.connection.fileDescriptor }
    return number < 0 ? [] : [PolledDescriptor(number: number)]
  }

  func loseDescriptors() -> Bool { false }

  @discardableResult func open() throws -> MonotonicTime? {
    try bus.withLock { bus in
      try bus.connection.start()
      return bus.connection.deadline
    }
  }

  @discardableResult func read(_: PolledDescriptor, _ take: (SourceInput) -> Void) -> MonotonicTime?
  { wake(take) }

  @discardableResult func wake(_ take: (SourceInput) -> Void) -> MonotonicTime? {
    let (inputs, next) = bus.withLock { bus in
      bus.connection.process()
      return (bus.inbox.take(), bus.connection.deadline)
    }
    for input in inputs { take(input) }
    return next
  }

  @discardableResult func close() -> [SourceInput] {
    bus.withLock { bus in
      bus.connection.close()
      bus.sleep.close()
    }
    // Ends the waits for the job.
    return asksForUnitJob ? [.unitJob(nil)] : []
  }

  // MARK: Facts of the lifecycle

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .readyToSleep: bus.withLock { $0.sleep.workEnded() }
    case .draining, .terminating:
      return bus.withLock { bus in
        bus.connection.sendOnDemand()
        return bus.connection.deadline
      }
    default: break
    }
    return nil
  }
}
