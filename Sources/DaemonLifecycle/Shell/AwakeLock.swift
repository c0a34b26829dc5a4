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
  /// file's, for good. It exists while there are holders, unless it can't be opened.
  var source: BusSource?
  /// The number of the source's request.
  var request: UInt64 = 0
  /// The sleeps of the work that waits for the answer; `nil` once it is known, or waited for no longer.
  var waiters: [Sleeper]?
  /// It is logged once.
  var hasLoggedLack = false
}

extension LifecycleCore {
  /// Has the machine kept awake until `letSleep`. Waits a second at most for the answer.
  nonisolated(nonsending) func keepAwake(because reason: String) async {
    let sleeper = Sleeper()
    guard let request = joinAwake(because: reason, sleeper) else { return }
    // A wait that was cancelled says nothing of logind.
    if (try? await clock.sleep(sleeper, until: clock.now.advanced(by: .seconds(1)))) != nil {
      awakeIsKnown(request, lack: "sleep: logind does not answer.")
    }
  }

  /// Returns the number of the request whose answer is to be waited for; `nil` if it is known.
  @inline(never) private func joinAwake(because reason: String, _ waiter: Sleeper) -> UInt64? {
    let isOver = exit != nil
    let (opened, request): (BusSource?, UInt64?) = awake.withLock { awake in
      awake.holders += 1
      if isOver { return (nil, nil) }
      var opened: BusSource?
      if awake.source == nil {
        awake.request += 1
        opened = BusSource(.system, [.awake(because: reason, request: awake.request)])
        (awake.source, awake.waiters) = (opened, [])
      }
      guard var waiters = awake.waiters.take() else { return (nil, nil) }
      waiters.append(waiter)
      awake.waiters = waiters
      return (opened, awake.request)
    }
    if let opened, let request {
      do { try listen(to: opened) } catch {
        awakeIsKnown(request, lack: "sleep: \(error)")
        // The next work tries again.
        awake.withLock { $0.source = nil }
      }
    }
    return request
  }

  /// Takes the first answer, or the end of a wait for it.
  @inline(never) func awakeIsKnown(_ request: UInt64, lack: String?) {
    let (waiters, isNews): ([Sleeper], Bool) = awake.withLock { awake in
      guard awake.request == request, let waiters = awake.waiters.take() else {
        return ([], false)
      }
      defer { if lack != nil { awake.hasLoggedLack = true } }
      return (waiters, !awake.hasLoggedLack)
    }
    if let lack, isNews { warn("Work can't keep the machine from \(lack)") }
    for waiter in waiters { remove(waiter) }
    end(waiters)
  }

  @inline(never) func letSleep() {
    let source = awake.withLock { awake -> BusSource? in
      awake.holders -= 1
      if awake.holders > 0 { return nil }
      awake.waiters = nil
      return awake.source.take()
    }
    if let source { closeParts { $0 === source } }
  }
}
