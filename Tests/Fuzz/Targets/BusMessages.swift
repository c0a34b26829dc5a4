// SPDX-License-Identifier: Apache-2.0
import CFuzz
import CLinux
import Synchronization

@testable import DaemonSystemd

extension FuzzTarget {
  /// A bus that says anything at any time, and fails in any call: what comes of it is an answer of its type or an error
  /// that is a sentence, never a repeat of what is followed, and at the end nothing of the bus is left.
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
    var options = BusSession.Options()
    // The empty name is this program, which has a bus of its own.
    options.library = kind == 255 ? "no-such-library.so.0" : ""
    options.stepsAtOnce = 16
    let addresses: [BusAddress] = [.system, .user, .address("unix:path=/fake")]
    let session = BusSession(addresses[Int(kind % 3)], options: options)
    let heard = HeardOfBus()
    let matters: [BusMatter] = [
      .stopTimeout, .delayLimit, .delayLock(.sleep), .unitJob, .sleep, .shutdown,
      .activeState(try UnitName("x.service")), .userSession,
    ]
    let items = matters.map { matter in
      session.follow(matter, while: { fuzz_bus_byte() % 16 != 15 }) { [weak session] answer in
        heard.check(answer, of: matter)
        if fuzz_bus_byte() == 255 { session?.close() }
        return fuzz_bus_byte() % 4 != 3
      }
    }
    session.start()
    while !fuzz_bus_has_ended() {
      let byte = fuzz_bus_byte()
      switch byte % 8 {
      case 0: session.ask(items[Int(byte / 8) % items.count])
      case 1: fuzz_bus_wait(1 << UInt64(byte / 8))
      default: session.process()
      }
    }
    session.close()
    heard.close()
    session.process()
  }
}

/// What was heard, for what must be true of all of it.
private final class HeardOfBus: Sendable {
  private struct State {
    var last: [String: String] = [:]
    var isClosed = false
  }
  private let state = Mutex(State())

  func close() { state.withLock { $0.isClosed = true } }

  func check(_ answer: Result<BusAnswer, BusError>, of matter: BusMatter) {
    require(!state.withLock(\.isClosed), "heard of \(matter) after the end")
    switch answer {
    case .success(let answer): check(answer, of: matter)
    case .failure(let error):
      require(error.description.utf8.count > 10, "no sentence: \(error)")
      require(error.isAbsence || !error.isUnavailable, "\(error)")
      require(!(error.isAccessDenied && error.isUnknownUnit), "\(error)")
    }
  }

  private func check(_ answer: BusAnswer, of matter: BusMatter) {
    switch matter {
    case .delayLock:
      require(answer.descriptor != nil, "no descriptor")
      return
    case .stopTimeout, .delayLimit:
      require(answer.duration.map { $0 >= .zero } ?? true, "a time below zero")
    case .unitJob: break
    case .sleep, .shutdown: checkIsNew("\(answer.isOn)", matter)
    case .activeState:
      require(answer.text != nil, "no state")
      checkIsNew(answer.text ?? "", matter)
    case .userSession: checkIsNew("\(answer.userSession)", matter)
    }
    require(answer.descriptor == nil, "\(matter) brings a descriptor")
  }

  private func checkIsNew(_ word: String, _ matter: BusMatter) {
    let last = state.withLock { $0.last.updateValue(word, forKey: "\(matter)") }
    require(last != word, "\(matter) is \(word) again")
  }
}
