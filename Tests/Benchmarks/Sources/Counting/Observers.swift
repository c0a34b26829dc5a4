// SPDX-License-Identifier: Apache-2.0
package import DaemonLifecycle
package import Synchronization

/// Observers that count, so that nobody gets away with telling fewer.
package protocol CountingObserver: SaveObserver {
  init()
  var total: Int { get async }
}

package final class ClassObserver: CountingObserver {
  private let calls = Atomic<Int>(0)
  package init() {}
  package func shouldSaveState(_ notification: ShouldSaveState) async {
    calls.add(1, ordering: .relaxed)
  }
  package var total: Int { calls.load(ordering: .relaxed) }
}

package actor ActorObserver: CountingObserver {
  package private(set) var total = 0
  package init() {}
  package func shouldSaveState(_ notification: ShouldSaveState) async { total += 1 }
}

/// That each observer was told as often as the others, and at all.
package func checkCounts(_ observers: [any CountingObserver]) async {
  let expected = await observers[0].total
  check(expected > 0, "nobody was told")
  for observer in observers {
    let total = await observer.total
    check(total == expected, "one observer was told \(total) times, another \(expected) times")
  }
}

/// A counter that closures share.
package final class Counter: Sendable {
  package let value = Atomic<Int>(0)
  package init() {}
}

package struct Ping: CustomNotification {
  package init() {}
}
