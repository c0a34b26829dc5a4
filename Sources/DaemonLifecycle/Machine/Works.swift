// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// All work of the daemon. A change of one takes the same time however many there are.
struct Works: Sendable {
  private var works: [ObserverID: Work] = [:]
  /// At most the earliest deadline of all works; exact once the clock has reached it.
  private(set) var deadline = MonotonicTime.distantFuture

  /// Whether a work has failed, and has not run well since.
  var haveFailed: Bool { works.values.contains { $0.lastFailure != nil } }
  /// In the order in which they were added.
  var known: [ObserverID] { works.keys.sorted() }
  var all: [Work] { known.compactMap { works[$0] } }

  mutating func add(_ work: Work) { works[work.id] = work }
  mutating func remove(_ id: ObserverID) -> Work? { works.removeValue(forKey: id) }

  subscript(id: ObserverID) -> Work? { works[id] }

  /// A work that is known to be there.
  subscript(known id: ObserverID) -> Work {
    _read { yield works[id]! }
    _modify {
      yield &works[id]!
      deadline = min(deadline, works[id]!.deadline)
    }
  }

  /// Returns the works for which the clock has something to do.
  mutating func due(at now: MonotonicTime) -> [ObserverID] {
    guard deadline <= now else { return [] }
    var due: [ObserverID] = []
    deadline = .distantFuture
    for (id, work) in works {
      let next = work.deadline
      if next <= now { due.append(id) } else { deadline = min(deadline, next) }
    }
    return due.sorted()
  }
}
