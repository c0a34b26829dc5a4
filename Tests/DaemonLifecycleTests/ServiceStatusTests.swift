// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// What systemd is told, fact by fact: no socket, no clock.
@Suite struct ServiceStatusTests {
  private var status = ServiceStatus()
  private static let signal = LifecycleCause(
    .signal(.sighup, pid: 1, uid: 0))

  private let time = MonotonicTime(nanoseconds: 42_999)

  private mutating func tell(_ fact: LifecycleFact) -> [NotifyField] {
    status.fields(for: fact, at: "12:00")
  }

  private func report(
    _ cause: LifecycleCause = LifecycleCause(.launch), failing: String? = nil,
    in notification: any LifecycleNotification.Type = ShouldReload.self
  ) -> LifecycleReport {
    let failures = failing.map {
      [
        LifecycleReport.Entry(
          notification: notification, outcome: .failed(TextError(text: $0)), duration: .zero,
          name: .type(ServiceStatusTests.self), failure: .init(TextError(text: $0)))
      ]
    }
    return LifecycleReport(cause: cause, entries: failures ?? [])
  }

  private func snapshot(_ state: LifecycleState, _ reasons: String...)
    -> LifecycleSnapshot
  {
    LifecycleSnapshot(state: state, reasons: reasons)
  }

  private mutating func launch() {
    _ = tell(.began(.launch, LifecycleCause(.launch), at: time))
    _ = tell(.ended(.launch, report(), .zero, snapshot(.foreground)))
    _ = tell(.launched)
  }

  @Test mutating func aSetUpThatTakesLongIsShown() {
    #expect(tell(.settingUp(.seconds(5))) == [.status("setting up")])
    #expect(
      tell(.began(.launch, LifecycleCause(.launch), at: time)) == [.status("launching")])
  }

  @Test mutating func readyComesWithTheLaunchAndOnce() {
    #expect(tell(.began(.launch, LifecycleCause(.launch), at: time)) == [.status("launching")])
    #expect(tell(.began(.reload, Self.signal, at: time)) == [])
    #expect(tell(.unmappedReload(at: time)) == [])
    #expect(tell(.ended(.launch, report(), .zero, snapshot(.foreground))) == [])
    #expect(
      tell(.launched)
        == [.ready, .status("foreground since 12:00 (launch)")])
    // The same is not sent twice.
    #expect(tell(.ended(.saveState, report(), .zero, snapshot(.foreground))) == [])
  }

  @Test mutating func noStatusComesAfterTheLast() {
    launch()
    _ = tell(.unhealthy("the main actor does not answer"))
    _ = tell(.terminating(Self.signal))
    let exit = LifecycleExit(
      exitStatus: 0, report: report(), failedLaunch: nil, overtakenPause: nil,
      error: nil)
    #expect(
      tell(.terminated(exit))
        == [.exitStatus(0), .status("ended with status 0, launch")])
    #expect(tell(.healthy) == [.watchdog])
    #expect(tell(.statusNote(.watchedUnit, "db.service is gone")) == [])
  }

  @Test mutating func aReloadIsAnsweredWithItsVerdict() {
    launch()
    #expect(
      tell(.began(.reload, Self.signal, at: time))
        == [.reloading(at: time.sinceBoot), .status("reloading: SIGHUP from pid 1 uid 0")])
    #expect(
      tell(.ended(.reload, report(Self.signal), .zero, snapshot(.foreground)))
        == [.ready, .status("foreground since 12:00 (launch); reloaded 12:00")])
  }

  @Test mutating func aNoteWaitsForTheEndOfAReload() {
    launch()
    _ = tell(.began(.reload, Self.signal, at: time))
    #expect(tell(.unhealthy("stuck")) == [])
    #expect(tell(.healthy) == [.watchdog])
    #expect(tell(.statusNote(.signals, "SIGHUP is ignored")) == [])
    let fields = tell(.ended(.reload, report(Self.signal), .zero, snapshot(.foreground)))
    #expect("\(fields)".contains("reloaded 12:00; SIGHUP is ignored"))
  }

  /// Each change costs as much as what is shown.
  @Test mutating func ofThousandsOfNotesTheFirstAreShown() {
    launch()
    for number in 1...4000 as ClosedRange<UInt64> {
      _ = tell(.statusNote(.work("work", number), "\(number) has failed"))
    }
    let shown = (1...16).map { "; \($0) has failed" }.joined()
    let status = "foreground since 12:00 (launch)"
    #expect(tell(.statusNote(.work("work", 1), nil)).text.hasSuffix("; and 3983 more"))
    #expect(
      tell(.statusNote(.work("work", 1), "1 has failed"))
        == [.status("\(status)\(shown); and 3984 more")])
  }

  @Test mutating func aRejectedReloadSaysWhy() {
    launch()
    _ = tell(.began(.reload, Self.signal, at: time))
    let fields = tell(
      .ended(.reload, report(failing: "no such feed"), .zero, snapshot(.foreground)))
    #expect(fields.first == .ready)
    guard case .status(let text)? = fields.last else {
      Issue.record("no status")
      return
    }
    #expect(text.contains("reload rejected 12:00"))
    #expect(text.contains("no such feed"))
    // It stays until the next one.
    let paused = tell(.ended(.background, report(), .zero, snapshot(.background, "operator")))
    #expect("\(paused)".contains("no such feed"))
    // A stop has nothing to do with it.
    var stopped = self
    let stopping = stopped.tell(.terminating(Self.signal))
    #expect(stopping == [.stopping, .status("stopping: \(Self.signal)")])
    _ = tell(.began(.reload, Self.signal, at: time))
    let well = tell(.ended(.reload, report(), .zero, snapshot(.background, "operator")))
    #expect(!"\(well)".contains("no such feed"))
  }

  /// What is not saved is not, whatever else goes well, until everything is saved again.
  @Test mutating func whatIsNotSavedIsShownUntilItIs() {
    launch()
    func failed(_ transition: LifecycleTransition) -> LifecycleFact {
      .ended(
        transition, report(Self.signal, failing: "disk full", in: ShouldSaveState.self), .zero,
        snapshot(transition == .background ? .background : .foreground))
    }
    func ended(_ transition: LifecycleTransition) -> LifecycleFact {
      .ended(transition, report(Self.signal), .zero, snapshot(.foreground))
    }
    let problem = "; ServiceStatusTests, ShouldSaveState: failed after 0 ms: disk full"
    for transition in [LifecycleTransition.background, .reload, .saveState] {
      #expect(tell(failed(transition)).text.contains(problem), "\(transition)")
      _ = tell(ended(.foreground))
      #expect(tell(.statusNote(.daemon, "\(transition)")).text.contains(problem))
      #expect(!tell(ended(transition)).text.contains(problem))
    }
  }

  /// Also where the last one came late, and no transition ended.
  @Test mutating func whoDidNotEnterIsShownUntilAllHave() {
    launch()
    let missing = LifecycleSnapshot(state: .foreground, reasons: [], unentered: ["db"])
    let report = report(Self.signal, failing: "refused", in: WillEnterForeground.self)
    let problem = "; ServiceStatusTests, WillEnterForeground: failed after 0 ms: refused"
    #expect(tell(.ended(.foreground, report, .zero, missing)).text.hasSuffix(problem))
    _ = tell(.ended(.saveState, self.report(Self.signal), .zero, missing))
    #expect(tell(.statusNote(.daemon, "here")).text.hasSuffix(problem))
    let all = snapshot(.foreground)
    #expect(
      tell(.positionChanged(Self.signal, all)).text
        == "foreground since 12:00 (SIGHUP from pid 1 uid 0); here")
  }

  /// What is tried again and completes is over, though somebody else is missing.
  @Test mutating func aRetryThatSucceedsEndsItsNote() {
    launch()
    let missing = LifecycleSnapshot(state: .foreground, reasons: [], unentered: ["db"])
    let failed = report(Self.signal, failing: "refused", in: WillEnterForeground.self)
    #expect(tell(.ended(.foreground, failed, .zero, missing)).text.contains("refused"))
    var retry = report(LifecycleCause(.lateObserver))
    retry.isRetry = true
    #expect(!tell(.ended(.catchUp, retry, .zero, missing)).text.contains("refused"))
  }

  @Test mutating func stoppingIsFinal() {
    launch()
    _ = tell(.began(.reload, Self.signal, at: time))
    let term = LifecycleCause(.signal(.sigterm, pid: 1, uid: 0))
    #expect(
      tell(.terminating(term)) == [.stopping, .status("stopping: SIGTERM from pid 1 uid 0")])
    #expect(tell(.ended(.reload, report(), .zero, snapshot(.foreground))) == [])
    #expect(tell(.terminating(term)) == [])
    #expect(tell(.launched) == [])
    #expect(tell(.unmappedReload(at: time)) == [])
    #expect(tell(.began(.reload, Self.signal, at: time)) == [])
  }

  @Test mutating func aReloadWhoseSubjectGoesAwayIsAnswered() {
    launch()
    #expect(tell(.closed) == [])
    _ = tell(.began(.reload, Self.signal, at: time))
    #expect(tell(.closed).first == .ready)
  }

  @Test mutating func anUnmappedReloadIsAnsweredAtOnce() {
    launch()
    let fields = tell(.unmappedReload(at: time))
    #expect(fields.prefix(2) == [.reloading(at: time.sinceBoot), .ready])
    #expect("\(fields)".contains("the signal map has no reload"))
  }

  @Test mutating func backgroundNamesItsReasonsAndWho() {
    launch()
    let cause = LifecycleCause(.signal(.sigusr1, pid: 7, uid: 3))
    #expect(
      tell(.ended(.background, report(cause), .zero, snapshot(.background, "operator")))
        == [.status("background, operator, since 12:00 (SIGUSR1 from pid 7 uid 3)")])
  }

  @Test mutating func theWatchdogsReasonComesAndGoes() {
    launch()
    #expect(tell(.healthy) == [.watchdog])
    let sick = tell(.unhealthy("the pool does not answer"))
    #expect("\(sick)".contains("not healthy: the pool does not answer"))
    #expect(tell(.unhealthy("the pool does not answer")) == [])
    #expect(tell(.healthy) == [.watchdog, .status("foreground since 12:00 (launch)")])
  }

  // MARK: The daemon's own text

  /// It is cut under the core's lock, where signals wait for it: no more of a long text is read than is kept.
  @Test func aLongTextIsNotRead() {
    var read = 0
    let text = sequence(first: "\u{e9}" as Unicode.Scalar) { last in
      read += 1
      return last
    }
    #expect(StatusText.cut(text).utf8.count == 200)
    #expect(read < 200)
    #expect(StatusText.cut("a\nb".unicodeScalars) == "a\\nb")
  }
}

struct TextError: Error, CustomStringConvertible {
  let text: String
  var description: String { text }
}

extension [NotifyField] {
  /// The status.
  fileprivate var text: String {
    for case .status(let text) in self { return text }
    return ""
  }
}
