// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Signals that come faster than they are read.
@Suite struct SignalOrderTests {
  /// Of two signals the later was in a slot still ahead of the reader and the earlier in one behind it.
  @Test(.timeLimit(.minutes(5))) func signalsAreReadInTheOrderInWhichTheyCame() async throws {
    let race = try SignalRace()
    // Threads of their own: the pool's block these signals.
    _ = Thread.spawn(named: "reader") { race.read() }
    _ = Thread.spawn(named: "raiser") { race.raisePairs(20_000) }
    await race.ended.wait()
    #expect(race.inversions.load(ordering: .relaxed) == 0)
  }

  /// A signal that is given up stays claimed until the last of it was taken: a source that begins in that moment would
  /// lose to the one that ends what it is sent.
  @Test func nobodyListensBeforeTheLastWasTaken() throws {
    let signal = try #require(UnixSignal.realTime(17)).rawValue
    let waker = Waker()
    let wake = waker.pointer
    defer { withExtendedLifetime(waker) {} }
    #expect(clinux_signal_listen(signal, wake, false) == 0)
    clinux_signal_unlisten(signal)
    #expect(clinux_signal_listen(signal, wake, false) == EBUSY)
    clinux_signal_release(signal)
    #expect(clinux_signal_listen(signal, wake, false) == 0)
    clinux_signal_unlisten(signal)
    clinux_signal_release(signal)
  }

  /// As far as a race can show it.
  @Test(.timeLimit(.minutes(5))) func aSourceThatEndsTakesNothingFromTheNext() async throws {
    let handover = Handover(try #require(UnixSignal.realTime(18)))
    // Threads of their own: the pool's block these signals.
    try #require(Thread.spawn(named: "ends") { handover.endAndBegin() })
    try #require(Thread.spawn(named: "raiser") { handover.raiseEach(50_000) })
    await handover.ended.wait()
    #expect(handover.stolen.load(ordering: .relaxed) == 0)
    #expect(handover.missed.load(ordering: .relaxed) == 0)
  }

  /// Two sources in turn: one that is sent nothing, and one that is sent one signal each time.
  private final class Handover: Sendable {
    let stolen = Atomic(0)
    let missed = Atomic(0)
    let ended = Gate()
    private let isOver = Atomic(false)
    private let signal: UnixSignal

    init(_ signal: UnixSignal) { self.signal = signal }

    private func begun() -> SignalSource? {
      let source = SignalSource(map: [signal: .reload])
      return (try? source.open()) == nil ? nil : source
    }

    func endAndBegin() {
      while !isOver.load(ordering: .acquiring) {
        if let source = begun(), !source.close().isEmpty { stolen.add(1, ordering: .relaxed) }
      }
      ended.open()
    }

    /// As often as there is time for.
    func raiseEach(_ count: Int) {
      let end = MonotonicTime.now().advanced(by: .seconds(2))
      var raised = 0
      while raised < count, .now() < end {
        guard let source = begun() else { continue }
        raise(signal.rawValue)
        raised += 1
        if source.close().count != 1 { missed.add(1, ordering: .relaxed) }
      }
      isOver.store(true, ordering: .releasing)
    }
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
      source = SignalSource(map: [first: .pause, second: .resume])
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
        for case .event(let event) in source.inputs(PolledDescriptor(number: -1)) {
          if case .pause = event.request {
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

  /// A timer of timer_create(2) has its own number where others have their process; and its code is one that any process
  /// may queue, so it is not the kernel's word.
  @Test(.timeLimit(.minutes(5))) func aTimerNamesNoSender() async throws {
    let signal = try #require(UnixSignal.realTime(19))
    let source = SignalSource(map: [signal: .reload])
    try source.open()
    defer { source.close() }
    var event = sigevent()
    event.sigev_signo = signal.rawValue
    event.sigev_notify = Int32(SIGEV_SIGNAL)
    var timers: [timer_t?] = [nil, nil]  // the second one has a number that is not 0
    for index in timers.indices { timer_create(CLOCK_MONOTONIC, &event, &timers[index]) }
    defer { for timer in timers { if let timer { timer_delete(timer) } } }
    let timer = try #require(timers[1])
    // Taken by the descriptor's reader, or by a handler on whatever thread.
    for descriptor in source.descriptors + [PolledDescriptor(number: -1)] {
      var time = itimerspec()
      time.it_value.tv_nsec = 1
      timer_settime(timer, 0, &time, nil)
      var inputs: [SourceInput] = []
      try await eventually {
        inputs = source.inputs(descriptor)
        return !inputs.isEmpty
      }
      guard case .event(let event)? = inputs.first else { continue }
      #expect("\(event.cause)" == "\(signal) queued")
    }
  }

  /// A handler and the descriptor take them from one queue: none is lost, and none counted twice. In a process of its
  /// own, whose calls nobody else waits for.
  @Test(.timeLimit(.minutes(5))) func eachOfAQueueIsCountedOnce() async {
    await #expect(processExitsWith: .success) {
      let signal = UnixSignal.realTime(9)!
      let source = SignalSource(map: [signal: .saveState])
      try source.open()
      guard source.descriptors.count == 1 else { exit(10) }
      // And as if a handler had woken us.
      let descriptors = source.descriptors + [PolledDescriptor(number: -1)]
      let total = 20_000
      let counted = Counter()
      let sending = Thread.spawn(named: "sender") {
        for index in 0..<total {
          // The queue may be full for a moment.
          while kill(getpid(), signal.rawValue) != 0 { sched_yield() }
          if index % 64 == 0 { usleep(10) }
        }
      }
      guard sending else { exit(11) }
      func readAll() {
        for descriptor in descriptors {
          for case .event(let event) in source.inputs(descriptor) {
            guard case .signal(signal, _, let coalesced) = event.cause.origin else { continue }
            counted.add(coalesced)
          }
        }
      }
      let end = MonotonicTime.now().advanced(by: .seconds(200))
      while counted.count < total, .now() < end { readAll() }
      guard counted.count == total else { exit(12) }
      // Nothing more comes.
      readAll()
      guard source.close().isEmpty, counted.count == total else { exit(13) }
    }
  }

  private final class Counter: Sendable {
    private let value = Atomic(0)
    var count: Int { value.load(ordering: .acquiring) }
    func add(_ more: Int) { value.add(more, ordering: .acquiringAndReleasing) }
  }
}
