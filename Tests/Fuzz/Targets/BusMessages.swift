// SPDX-License-Identifier: Apache-2.0
import CFuzz
import CLinux

@testable import DaemonLifecycle
@testable import DaemonSystemd

extension FuzzTarget {
  /// A bus that sends anything at any time, and fails in any call: what comes of it is an input or a warning that is a
  /// sentence, never a repeat of what is followed, and at the end nothing of the bus is left.
  static let bus = FuzzTarget(name: "bus") { input in
    // What the first one opens for all of the process's life is no leak.
    try warmUp.get()
    let bytes = input.all()
    try bytes.withUnsafeBufferPointer { bytes in
      fuzz_bus_begin(bytes.baseAddress, bytes.count)
      let lowest = lowestDescriptor()
      try useBus()
      require(fuzz_bus_objects() == 0, "\(fuzz_bus_objects()) objects of the bus are left")
      require(lowestDescriptor() == lowest, "a descriptor is left open")
    }
  }

  private static let warmUp = Result {
    fuzz_bus_begin(nil, 0)
    try useBus()
  }

  private static func lowestDescriptor() -> CInt {
    let number = dup(2)
    close(number)
    return number
  }

  private static func useBus() throws {
    let kind = fuzz_bus_byte()
    var options = BusConnection.Options()
    // The empty name is this program, which has a bus of its own.
    options.library = kind == 255 ? "no-such-library.so.0" : ""
    options.stepsAtOnce = 16
    options.now = { MonotonicTime(microseconds: fuzz_bus_time()) }
    let addresses: [BusAddress] = [.system, .user, .address("unix:path=/fake")]
    let inbox = BusInbox()
    let sleep = SleepFollower(inbox)
    let connection = BusConnection(
      addresses[Int(kind % 3)],
      [.stopTimeout(inbox), .unitJob(inbox), sleep.request, .unit("x.service", inbox)],
      options: options)
    try connection.start()
    var followed = Followed()
    while !fuzz_bus_has_ended() {
      let byte = fuzz_bus_byte()
      switch byte % 16 {
      case 0, 1: connection.sendOnDemand()
      case 2: sleep.workEnded()
      case 3, 4: fuzz_bus_wait(1 << UInt64(byte / 8))
      default: connection.process()
      }
      for input in inbox.take() { followed.check(input) }
    }
    connection.close()
    connection.process()
    require(inbox.take().isEmpty, "an input after the end")
  }
}

/// What was followed, for what must be true of all of it.
private struct Followed {
  /// The last change of each state, by what it is about.
  private var last: [String: String] = [:]

  mutating func check(_ input: LifecycleMachine.Input) {
    switch input {
    case .event(let event):
      let subject =
        switch event.request {
        case .pause(let reason), .resume(let reason): reason.name
        default: "sleep"
        }
      let change = "\(event.cause)"
      require(change.utf8.count > 10, "no fact: \(change)")
      let before = last.updateValue(change, forKey: subject)
      require(before != change, "\(change) again")
    case .stopTimeout(let time), .sleepDelay(let time): require(time >= .zero, "\(time)")
    case .warning(let text): requireSentence(text)
    case .unitJob, .statusNote: break
    default: require(false, "\(input) is none of the bus's")
    }
  }
}
