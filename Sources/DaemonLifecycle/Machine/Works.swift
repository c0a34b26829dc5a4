// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// All work of the daemon. A change of one takes the same time however many there are.
struct Works: Sendable {
  /// Sorted, since they are added in this order. The place of one that was removed is kept until half are free, so that a
  /// removal moves no other.
  private var ids: [ObserverID] = []
  private var places: [Work?] = []
  private var removed = 0
  /// Not after the first time at which the clock has something to do: it may be too early until the clock reaches it.
  private(set) var deadline = MonotonicTime.distantFuture

  private func index(of id: ObserverID) -> Int? {
    let index = ids.partitioningIndex { $0 >= id }
    return index < ids.count && ids[index] == id ? index : nil
  }

  subscript(id: ObserverID) -> Work? {
    _read { if let index = index(of: id) { yield places[index] } else { yield nil } }
  }

  /// Whether one has failed, and has not run well since.
  var haveFailed: Bool { places.contains { $0?.lastFailure.map { _ in true } ?? false } }
  var all: [Work] { places.compactMap { $0 } }
  var known: [ObserverID] { ids.indices.compactMap { places[$0] == nil ? nil : ids[$0] } }

  mutating func add(_ work: Work) {
    ids.append(work.id)
    places.append(work)
  }

  mutating func remove(_ id: ObserverID) -> Work? {
    guard let index = index(of: id), let work = places[index].take() else { return nil }
    removed += 1
    if removed > 32, removed > ids.count / 2 {
      places.removeAll { $0 == nil }
      ids = places.compactMap { $0?.id }
      removed = 0
    }
    return work
  }

  /// A work that is known to be there.
  subscript(known id: ObserverID) -> Work {
    _read { yield places[index(of: id)!]! }
    _modify {
      let index = index(of: id)!
      yield &places[index]!
      deadline = min(deadline, places[index]!.deadline)
    }
  }

  /// Returns those for which the clock has something to do.
  mutating func due(at now: MonotonicTime) -> [ObserverID] {
    guard deadline <= now else { return [] }
    deadline = .distantFuture
    var due: [ObserverID] = []
    for index in places.indices {
      guard let next = places[index]?.deadline else { continue }
      if next <= now { due.append(ids[index]) } else { deadline = min(deadline, next) }
    }
    return due
  }
}
