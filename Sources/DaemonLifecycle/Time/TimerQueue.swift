// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The sleeps and actions of a clock, soonest first; those with the same deadline in the order added.
///
/// A binary heap, whose sleepers know their places: adding and removing take a time that grows with the logarithm of
/// the count. A sleeper is in one queue at most, and its place is guarded by what guards that queue.
struct TimerQueue {
  private struct Timer {
    let deadline: MonotonicTime
    /// The number of timers added before.
    let number: UInt64
    let sleeper: Sleeper

    static func < (a: Timer, b: Timer) -> Bool {
      a.deadline == b.deadline ? a.number < b.number : a.deadline < b.deadline
    }
  }

  /// Each is no earlier than its parent, at half its place.
  private var heap: [Timer] = []
  private var added: UInt64 = 0

  var first: MonotonicTime? { heap.first?.deadline }
  var count: Int { heap.count }

  /// Adds a sleeper, or changes the deadline of one that is in the queue.
  mutating func add(_ sleeper: Sleeper, at deadline: MonotonicTime) {
    remove(sleeper)
    heap.append(Timer(deadline: deadline, number: added, sleeper: sleeper))
    added += 1
    settle(heap.count - 1)
  }

  mutating func remove(_ sleeper: Sleeper) {
    guard let place = sleeper.place else { return }
    sleeper.place = nil
    let last = heap.removeLast()
    guard place < heap.count else { return }
    heap[place] = last
    settle(place)
  }

  mutating func removeExpired(at now: MonotonicTime) -> [Sleeper] {
    var expired: [Sleeper] = []
    while let first = heap.first, first.deadline <= now {
      remove(first.sleeper)
      expired.append(first.sleeper)
    }
    return expired
  }

  /// Moves the timer at a place up or down to where it belongs.
  private mutating func settle(_ start: Int) {
    let timer = heap[start]
    var place = start
    while place > 0, timer < heap[(place - 1) / 2] {
      move((place - 1) / 2, to: place)
      place = (place - 1) / 2
    }
    while let child = soonerChild(of: place), heap[child] < timer {
      move(child, to: place)
      place = child
    }
    heap[place] = timer
    timer.sleeper.place = place
  }

  private mutating func move(_ source: Int, to place: Int) {
    heap[place] = heap[source]
    heap[place].sleeper.place = place
  }

  private func soonerChild(of place: Int) -> Int? {
    let (left, right) = (2 * place + 1, 2 * place + 2)
    guard left < heap.count else { return nil }
    return right < heap.count && heap[right] < heap[left] ? right : left
  }
}
