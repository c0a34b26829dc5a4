// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The sleeps and actions of a clock, soonest first; those with the same deadline in the order added.
///
/// A binary heap, whose sleepers know their places: adding and removing take a time that grows with the logarithm of
/// the count. A sleeper is in one queue at most, whose lock also guards its place.
struct TimerQueue {
  /// Each is no earlier than its parent, at half its place.
  private var heap: [Sleeper] = []
  private var added: UInt64 = 0

  var first: MonotonicTime? { heap.first?.queued?.deadline }
  var count: Int { heap.count }

  /// Adds a sleeper, or changes the deadline of one that is in the queue.
  mutating func add(_ sleeper: Sleeper, at deadline: MonotonicTime) {
    remove(sleeper)
    sleeper.queued = Sleeper.Queued(deadline: deadline, number: added, place: heap.count)
    heap.append(sleeper)
    added += 1
    settle(sleeper, at: heap.count - 1)
  }

  mutating func remove(_ sleeper: Sleeper) {
    guard let place = sleeper.queued?.place else { return }
    sleeper.queued = nil
    let last = heap.removeLast()
    if place < heap.count { settle(last, at: place) }
  }

  mutating func removeExpired(at now: MonotonicTime) -> [Sleeper] {
    var expired: [Sleeper] = []
    while let first, first <= now {
      expired.append(heap[0])
      remove(heap[0])
    }
    return expired
  }

  /// Puts a sleeper at a place, or up or down from there where it belongs.
  private mutating func settle(_ sleeper: Sleeper, at start: Int) {
    var place = start
    while place > 0, isSooner(sleeper, heap[(place - 1) / 2]) {
      put(heap[(place - 1) / 2], at: place)
      place = (place - 1) / 2
    }
    while let child = soonerChild(of: place), isSooner(heap[child], sleeper) {
      put(heap[child], at: place)
      place = child
    }
    put(sleeper, at: place)
  }

  private mutating func put(_ sleeper: Sleeper, at place: Int) {
    heap[place] = sleeper
    sleeper.queued!.place = place
  }

  private func isSooner(_ a: Sleeper, _ b: Sleeper) -> Bool { a.queued! < b.queued! }

  private func soonerChild(of place: Int) -> Int? {
    let (left, right) = (2 * place + 1, 2 * place + 2)
    guard left < heap.count else { return nil }
    return right < heap.count && isSooner(heap[right], heap[left]) ? right : left
  }
}
