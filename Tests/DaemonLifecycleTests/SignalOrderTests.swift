import CLinux
import Synchronization
import Testing

@testable import DaemonLifecycle

/// Signals that come faster than they are read.
@Suite struct SignalOrderTests {
  /// Of two signals the later was in a slot still ahead of the reader and the earlier in one behind it.
  @Test(.timeLimit(.minutes(1))) func signalsAreReadInTheOrderInWhichTheyCame() async throws {
    let race = try SignalRace()
    // Threads of their own: the pool's block these signals.
    _ = Thread.spawn(named: "reader") { race.read() }
    _ = Thread.spawn(named: "raiser") { race.raisePairs(20_000) }
    await race.ended.wait()
    #expect(race.inversions.load(ordering: .relaxed) == 0)
  }

  private final class SignalRace: Sendable {
    let inversions = Atomic(0)
    let ended = Gate()
    private let first = UnixSignal.realTime(7)!
    private let second = UnixSignal.realTime(8)!
    private let source: SignalSource
    private let pairsRead = Atomic(0)
    private let isOver = Atomic(false)

    init() throws {
      source = SignalSource(map: [first: .enterBackground, second: .enterForeground])
      try source.open()
    }

    /// As many as there is time for: on a busy machine each takes a turn of the scheduler.
    func raisePairs(_ count: Int) {
      let end = MonotonicTime.now().advanced(by: .seconds(2))
      for pair in 1...count where inversions.load(ordering: .relaxed) == 0 && .now() < end {
        raise(first.rawValue)
        raise(second.rawValue)  // both handlers have run here, in this order
        while pairsRead.load(ordering: .acquiring) < pair { sched_yield() }
      }
      isOver.store(true, ordering: .releasing)
    }

    func read() {
      var firsts = 0
      while !isOver.load(ordering: .acquiring) {
        for case .event(let event) in source.read(PolledDescriptor(number: -1)) {
          if case .enterBackground = event.kind {
            firsts += 1
            continue
          }
          let pairs = pairsRead.load(ordering: .relaxed)
          if firsts == pairs { inversions.add(1, ordering: .relaxed) }
          pairsRead.store(pairs + 1, ordering: .releasing)
        }
      }
      source.close()
      ended.open()
    }
  }
}
