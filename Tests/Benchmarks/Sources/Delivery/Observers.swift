import DaemonLifecycle
import Synchronization

/// Observers that count, so that nobody gets away with telling fewer.
protocol CountingObserver: StateObserver {
  init()
  var total: Int { get async }
}

final class ClassObserver: CountingObserver {
  private let calls = Atomic<Int>(0)
  func shouldSaveState(_ notification: ShouldSaveState) async {
    calls.add(1, ordering: .relaxed)
  }
  var total: Int { calls.load(ordering: .relaxed) }
}

actor ActorObserver: CountingObserver {
  private(set) var total = 0
  func shouldSaveState(_ notification: ShouldSaveState) async { total += 1 }
}

/// That each observer was told as often as the others, and at all.
func checkCounts(_ observers: [any CountingObserver]) async {
  let expected = await observers[0].total
  check(expected > 0, "nobody was told")
  for observer in observers {
    let total = await observer.total
    check(total == expected, "one observer was told \(total) times, another \(expected) times")
  }
}

/// A counter that closures share.
final class Counter: Sendable {
  let value = Atomic<Int>(0)
}

struct Ping: LifecycleNotification {}
