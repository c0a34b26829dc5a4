// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The lock that keeps the machine awake: all work that needs one at a time shares it.
///
/// It has a connection to the bus of its own, so that a daemon without such work has nothing of it.
struct AwakeLock {
  /// How many pieces of work hold it, or wait for it.
  var holders = 0
  /// Has the lock, until it is closed and dropped; after a loss of descriptors, when the lock's number may be another
  /// file's, for good. It exists while there are holders.
  var source: BusSource?
  /// The number of the source's request.
  var request: UInt64 = 0
  var isAnswered = false
  /// The sleeps of the work that waits for the answer.
  var waiters: [Sleeper] = []
  /// It is logged once.
  var hasLoggedLack = false
}

extension LifecycleCore {
  /// Has the machine kept awake until `letSleep`. Waits a second at most for the answer.
  nonisolated(nonsending) func keepAwake(because reason: String) async {
    let sleeper = Sleeper()
    guard let request = joinAwake(because: reason, sleeper) else { return }
    let isOver =
      (try? await clock.sleep(sleeper, until: clock.now.advanced(by: .seconds(1)))) != nil
    // A wait that was cancelled says nothing of logind.
    if leaves(sleeper), isOver {
      awakeIsKnown(request, lack: "sleep: logind does not answer.", isAnswer: false)
    }
  }

  /// Returns the number of the request whose answer is to be waited for; `nil` if it is known.
  @inline(never) private func joinAwake(because reason: String, _ waiter: Sleeper) -> UInt64? {
    let isOver = exit != nil
    let (source, request): (BusSource?, UInt64?) = awake.withLock { awake in
      awake.holders += 1
      if awake.isAnswered || isOver { return (nil, nil) }
      awake.waiters.append(waiter)
      if awake.source != nil { return (nil, awake.request) }
      awake.request += 1
      awake.source = BusSource(.system, [.awake(because: reason, request: awake.request)])
      return (awake.source, awake.request)
    }
    if let source, let request {
      do { try listen(to: source) } catch {
        awakeIsKnown(request, lack: "sleep: \(error)")
        // The next work tries again.
        awake.withLock { ($0.source, $0.isAnswered) = (nil, false) }
      }
    }
    return request
  }

  /// Removes a waiter. Returns whether it still waited.
  @inline(never) private func leaves(_ waiter: Sleeper) -> Bool {
    awake.withLock { awake in
      let index = awake.waiters.firstIndex { $0 === waiter }
      if let index { awake.waiters.remove(at: index) }
      return index != nil
    }
  }

  /// Takes the answer, which may come after the work that waited for it, or the end of a wait for it.
  @inline(never) func awakeIsKnown(_ request: UInt64, lack: String?, isAnswer: Bool = true) {
    let (waiters, isNews) = awake.withLock { awake in
      let isOver = awake.request != request || awake.holders == 0
      if isOver || !isAnswer && awake.isAnswered { return ([Sleeper](), false) }
      defer {
        (awake.isAnswered, awake.waiters) = (true, [])
        if lack != nil { awake.hasLoggedLack = true }
      }
      return (awake.waiters, !awake.hasLoggedLack)
    }
    if let lack, isNews { warn("Work can't keep the machine from \(lack)") }
    for waiter in waiters { remove(waiter) }
    end(waiters)
  }

  @inline(never) func letSleep() {
    let source = awake.withLock { awake -> BusSource? in
      awake.holders -= 1
      if awake.holders > 0 { return nil }
      awake.isAnswered = false
      return awake.source.take()
    }
    if let source { closeParts { $0 === source } }
  }
}
