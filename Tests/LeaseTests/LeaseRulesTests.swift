// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Testing

@testable import DaemonLifecycleLease

/// The rules alone, with times and positions that a test chooses.
@Suite final class LeaseRulesTests {
  private var rules = LeaseRules(handover: .seconds(3))
  private var now = MonotonicTime(nanoseconds: 5_000_000_000)
  /// In the background for want of the lease.
  private var position: LifecycleCore.Position = (true, true, false, false, false, false)

  private func next() -> String? {
    switch rules.next(position, isAsked: false, canStart: true, at: now) {
    case .start: "start"
    case .pause: "pause"
    case .end: "end"
    case .hurry: "hurry"
    case .exit(let reason): "exit: \(reason)"
    case nil: nil
    }
  }

  private func start() {
    #expect(next() == "start")
    rules.started(at: now)
  }

  private func hold() {
    start()
    let isHeld = rules.printed()
    #expect(isHeld)
  }

  /// Begins an elector that ends by itself, after so long.
  private func run(for time: Duration, printing line: Bool = false) {
    if line { hold() } else { start() }
    now = now.advanced(by: time)
    let isUnasked = rules.ended(at: now, delays: true)
    #expect(isUnasked)
    rules.isGone()
  }

  /// The time until it is run again: not before, and without an event.
  private func delay() -> Duration {
    let ended = now
    #expect(next() == nil)
    now = rules.deadline.advanced(by: .nanoseconds(-1))
    #expect(next() == nil)
    now = now.advanced(by: .nanoseconds(1))
    return ended.duration(to: now)
  }

  @Test func oneThatEndsIsRunAgainLaterAndLater() {
    var delays: [Duration] = []
    for time: Duration in [.zero, .zero, .seconds(1), .zero, .zero, .zero, .seconds(2)] {
      run(for: time)
      delays.append(delay())
    }
    #expect(delays == [100, 200, 400, 800, 1600, 2000, 2000].map { .milliseconds($0) })
    run(for: .milliseconds(2001))
    #expect(delay() == .milliseconds(100))
  }

  @Test func aPauseAfterALossHasItsTime() {
    run(for: .zero, printing: true)
    position.isSettled = false
    #expect(next() == nil)
    #expect(rules.deadline == now.advanced(by: .seconds(3)))
    now = rules.deadline.advanced(by: .nanoseconds(-1))
    #expect(next() == nil)
    now = now.advanced(by: .nanoseconds(1))
    #expect(next() == "exit: work or its save has not ended in time")
    // Of a test, in which nothing ends.
    #expect(next() == nil && rules.deadline == .distantFuture)
  }

  /// What it does is still the active one's, for as long as a pause may take.
  @Test(arguments: [true, false]) func anAbandonedHookHasThatTimeToo(ends: Bool) {
    run(for: .zero, printing: true)
    position.hasAbandonedHooks = true
    let end = now.advanced(by: .seconds(3))
    for _ in 1...2 {
      #expect(next() == nil && rules.deadline == now.advanced(by: .seconds(1)))
      now = rules.deadline
    }
    if ends { position.hasAbandonedHooks = false } else { now = end }
    #expect(next() == (ends ? "start" : "exit: an abandoned hook still runs"))
  }

  /// Who has not saved yet would lose its state; what writes for the lease ends.
  @Test func aStopHurriesAfterTheHandover() {
    run(for: .zero, printing: true)
    (position.isSettled, position.isTerminating) = (false, true)
    #expect(next() == nil && rules.deadline == now.advanced(by: .seconds(3)))
    now = now.advanced(by: .seconds(60))
    #expect(next() == "hurry" && next() == nil)
  }

  /// What was due is not: somebody else has paused the daemon, and a lease that is held lasts.
  @Test func nothingIsDueInAPauseOrWithALease() {
    run(for: .zero)
    position.hasOthers = true
    #expect(next() == nil && rules.deadline == .distantFuture)
    position.hasOthers = false
    _ = delay()
    start()
    #expect(next() == nil && rules.deadline == .distantFuture)
    _ = rules.printed()
    position.hasReason = false
    #expect(next() == nil && rules.deadline == .distantFuture)
  }

  @Test func anAbandonedHookIsLookedAtAgain() {
    hold()
    (position.hasOthers, position.hasAbandonedHooks) = (true, true)
    #expect(next() == nil && rules.isKept)
    #expect(rules.deadline == now.advanced(by: .seconds(1)))
    position.hasAbandonedHooks = false
    #expect(next() == "end" && !rules.isKept)
  }

  /// A pause, or a stop: either is enough.
  @Test(arguments: [true, false]) func oneThatWaitsEndsWithAPauseAndAStop(isStop: Bool) {
    start()
    if isStop { position.isTerminating = true } else { position.hasOthers = true }
    #expect(next() == "end")
  }

  @Test func aLineIsTheLeaseOfOneThatWaitsAlone() {
    hold()
    let isHeld = rules.printed()
    #expect(!isHeld)
  }

  /// With `handover: nil` a loss is as long as its hooks.
  @Test func withoutALimitNothingEndsTheProcess() {
    rules = LeaseRules(handover: nil)
    run(for: .zero, printing: true)
    position.isSettled = false
    #expect(next() == nil && rules.deadline == .distantFuture)
    (position.isSettled, position.hasAbandonedHooks) = (true, true)
    #expect(delay() == .milliseconds(100))
    #expect(next() == "start")
  }
}
