// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import TestSupport
import Testing

@testable import DaemonLifecycle

/// What the machine does under the core's lock with thousands of observers, posts and reasons: by how it grows, and not by
/// how long it takes.
@Suite(.offThePool, .serialized) struct LockGrowthTests {
  private struct Note: CustomNotification {}

  private func daemon(of count: Int, timeout: Duration? = nil) -> DaemonUnderTest {
    let daemon = DaemonUnderTest()
    for _ in 0..<count {
      daemon.add([ShouldSaveState.self, DidEnterBackground.self, Note.self], timeout: timeout)
    }
    return daemon
  }

  /// The least of several: what a busy machine does to a processor's caches, and a first time's page faults, only add.
  private func least(_ time: () throws -> Duration) rethrows -> Duration {
    try (0..<5).map { _ in try time() }.min()!
  }

  /// Connections, for instance, which come and go in the foreground.
  @Test func anObserverWithALimitIsAddedInConstantTime() {
    func time(beside count: Int) -> Duration {
      let daemon = daemon(of: count, timeout: .seconds(5))
      return threadTime {
        for _ in 0..<200 { daemon.add([DidEnterBackground.self], timeout: .seconds(5)) }
      }
    }
    // Sixteen times as long where all others are looked at.
    #expect(least { time(beside: 8000) } < least { time(beside: 500) } * 4)
  }

  @Test func aSaveThatAStopFindsUnderWayIsNotQuadratic() {
    func time(of count: Int) -> Duration {
      let daemon = daemon(of: count)
      var next = daemon.request(.saveState).starts.first
      daemon.signal()
      return threadTime {
        for _ in 0..<count {
          next = next.flatMap { daemon.give(.ended($0, .completed)).starts.first }
        }
      }
    }
    #expect(least { time(of: 2000) } < least { time(of: 500) } * 8)
  }

  /// Each was abandoned, and has the time of a save.
  @Test func savesThatAStopWaitsForOnceMoreAreNotQuadratic() {
    func time(of count: Int) -> Duration {
      let daemon = DaemonUnderTest()
      for _ in 0..<count {
        daemon.add([ShouldSaveState.self], phase: .init(order: 0, isConcurrent: true))
      }
      daemon.request(.saveState)
      for time in [at(10), at(12)] { daemon.give(.clock, at: time) }
      return threadTime { daemon.signal(at: 13) }
    }
    #expect(least { time(of: 1000) } < least { time(of: 250) } * 8)
  }

  @Test func aPostThatAStopRefusesCostsNoLookAtAllObservers() {
    func time(of count: Int) -> Duration {
      let daemon = daemon(of: count)
      daemon.give(.hold)
      for _ in 0..<2000 { daemon.give(.post(LifecyclePost(Note()), inside: nil)) }
      var messages = 0
      defer { #expect(messages > 2000) }
      return threadTime { messages = daemon.signal().messages.count }
    }
    // One plan for all of a type: it alone is sixteen times as long.
    #expect(least { time(of: 1600) } < least { time(of: 100) } * 8)
  }

  @Test func postsThatComeTooLateCostNoLookAtAllObservers() {
    func time(of count: Int) -> Duration {
      let daemon = daemon(of: count)
      daemon.signal()
      var answers: [Effects.Message] = []
      defer { #expect(answers.count == 2000) }
      return threadTime {
        for _ in 0..<2000 {
          answers += daemon.give(.post(LifecyclePost(Note()), inside: nil)).messages
        }
      }
    }
    #expect(least { time(of: 1600) } < least { time(of: 100) } * 8)
  }

  /// Work that one observer holds back, beside as many that fail after these: at each retry.
  @Test func manyThatDoNotEnterAreNotAskedForEachRound() throws {
    func time(of count: Int) throws -> Duration {
      let daemon = DaemonUnderTest(state: .background, observing: [WillEnterForeground.self])
      for number in 0..<2 * count {
        if number < count {
          daemon.add(WorkOptions())
        } else {
          daemon.add([WillEnterForeground.self])
        }
      }
      var failed = 0
      func fail(_ output: DaemonUnderTest.Output) {
        var next = output.starts.first
        while let call = next {
          failed += 1
          let failure = DaemonLifecycle.Failure(SimulatedFailure())
          next = daemon.give(.ended(call, .failed(failure)), at: daemon.machine.now).starts.first
        }
      }
      fail(daemon.request(.resume))
      #expect(failed == count + 1)
      return threadTime {
        fail(daemon.give(.clock, at: daemon.machine.deadline))
        #expect(failed == 2 * (count + 1))
      }
    }
    #expect(try least { try time(of: 1600) } < least { try time(of: 400) } * 8)
  }

  /// Each is ready, is missed and comes back, and ends, in the time of one.
  @Test func workIsNotLookedAtBesideAllOther() {
    func time(of count: Int) -> Duration {
      let daemon = DaemonUnderTest(state: .background)
      let phase = LifecyclePhase(order: 0, isConcurrent: true)
      let work = WorkOptions(
        readyWithin: .seconds(5), stallsAfter: .seconds(9),
        restarts: .backoff(initialDelay: .seconds(1)))
      for _ in 0..<count { daemon.add(work, phase: phase) }
      let failure = DaemonLifecycle.Failure(SimulatedFailure())
      return threadTime {
        daemon.request(.resume)
        for number in 1...count { daemon.work(.ready(run: 1), of: number) }
        for number in 1...count { daemon.work(.ended(run: 1, failure), of: number) }
        daemon.give(.clock, at: at(1))
        for number in 1...count { daemon.work(.ready(run: 2), of: number, at: at(1)) }
        #expect(daemon.isReady)
        daemon.request(.terminate, at: at(2))
        for number in 1...count { daemon.work(.ended(run: 2, nil), of: number, at: at(2)) }
        #expect(daemon.stop.exit?.exitStatus == 0)
      }
    }
    #expect(least { time(of: 1600) } < least { time(of: 100) } * 40)
  }

  /// Each change is shown, but not all names.
  @Test func aReasonForTheBackgroundCostsNoSortOfAllOthers() {
    func time(beside count: Int) -> Duration {
      let daemon = daemon(of: 0)
      for number in 0..<count { daemon.request(.pause(for: BackgroundReason("unit \(number)"))) }
      return threadTime {
        for number in 0..<200 { daemon.request(.pause(for: BackgroundReason("late \(number)"))) }
      }
    }
    #expect(least { time(beside: 4000) } < least { time(beside: 250) } * 4)
  }

  @Test func manyReasonsAreShownByTheFirstNames() {
    let daemon = daemon(of: 0)
    for number in (10...30).reversed() {
      daemon.request(.pause(for: BackgroundReason("unit \(number)")))
    }
    let reasons = daemon.machine.snapshot.reasons
    #expect(reasons == (10...25).map { "unit \($0)" } + ["5 more"])
    daemon.request(.resume(for: BackgroundReason("unit 12")))
    daemon.request(.resume(for: BackgroundReason("unit 12")))
    #expect(!daemon.machine.snapshot.reasons.contains("unit 12"))
    #expect(daemon.machine.registry.backgroundReasons.count == 20)
  }
}
