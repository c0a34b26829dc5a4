// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// A block lock of logind's, with which it refuses the machine's sleep, and its shutdown where that is allowed.
///
/// It has a connection to the bus of its own, so that a daemon without such a lock has nothing of it.
final class AwakeLock: Sendable {
  private struct State {
    var lock: BusDescriptor?
    /// Why there is none.
    var problem: String?
  }

  private let calls: [BusCall]
  private let state = Mutex(State())
  /// Ended by the first answer.
  let answered = Sleeper()

  init(because reason: String) {
    // Each has a privilege of its own.
    calls = ["sleep:shutdown", "sleep"].map { what in
      BusCall(
        "Inhibit", of: BusService.logind.path, BusService.logind.interface("Manager"), .logind,
        [what, Journal.programName, VisibleText.excerpt(reason), "block"])
    }
  }

  var source: BusSource {
    BusSource(
      .system,
      [
        .other { [self] in
          BusRequest(.logind, query: self.calls[0]) { [self] event in receive(event) }
        }
      ])
  }

  private func receive(_ event: BusRequest.Event) -> BusRequest.Next {
    switch event {
    case .reply(let values, _):
      guard case .descriptor(let lock)? = values.only else { return .malformed }
      state.withLock { $0.lock = lock }
    case .failure(_, of: calls[0]): return .call(calls[1])
    case .failure(let error, _): state.withLock { $0.problem = "\(error)" }
    case .signal: break
    }
    answered.end()
    return .done
  }

  /// Why there is no lock; `nil` where there is one.
  @inline(never) var problem: String? {
    state.withLock { $0.lock == nil ? $0.problem ?? "logind does not answer" : nil }
  }
}

extension LifecycleCore {
  /// Takes a lock, for whose answer it waits a second at most. Returns its source, which keeps the lock until it is closed
  /// and dropped; after a loss of descriptors, when its number may be another file's, for good.
  nonisolated(nonsending) func take(_ lock: AwakeLock) async -> BusSource? {
    let source = lock.source
    if exit != nil { return nil }
    do { try listen(to: source) } catch {
      warn("\(error)")
      return nil
    }
    do {
      try await clock.sleep(lock.answered, until: clock.now.advanced(by: .seconds(1)))
    } catch { return source }  // Cancelled: whether there is an answer is not known.
    if let problem = lock.problem, !hasSaidAsleep.exchange(true, ordering: .relaxed) {
      warn("The machine may sleep during work that is to keep it awake: \(problem)")
    }
    return source
  }
}
