// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The sleeps of a clock, soonest first; those with the same deadline in the order added.
struct TimerQueue {
  private var timers: [(deadline: MonotonicTime, sleeper: Sleeper)] = []

  var first: MonotonicTime? { timers.first?.deadline }
  var count: Int { timers.count }

  mutating func add(_ sleeper: Sleeper, at deadline: MonotonicTime) {
    var low = 0
    var high = timers.count
    while low < high {
      let middle = (low + high) / 2
      if timers[middle].deadline <= deadline { low = middle + 1 } else { high = middle }
    }
    timers.insert((deadline, sleeper), at: low)
  }

  mutating func remove(_ sleeper: Sleeper) { timers.removeAll { $0.sleeper === sleeper } }

  mutating func removeExpired(at now: MonotonicTime) -> [Sleeper] {
    let expired = timers.prefix { $0.deadline <= now }
    timers.removeFirst(expired.count)
    return expired.map(\.sleeper)
  }
}
