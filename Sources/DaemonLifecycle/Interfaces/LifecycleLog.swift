// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd

/// The log: every transition and problem as a journal entry with fields, if standard error goes to the journal;
/// otherwise a line on standard error for each problem. `LifecycleLogging` says what else, and whether at all. An author's
/// own log receives all that the journal would.
///
/// ```sh
/// journalctl -u mydaemon LIFECYCLE_EVENT=background
/// ```
final class LifecycleLog: LifecyclePart {
  /// The journal; `nil` when standard error does not go there, or nothing is logged.
  private let journal: JournalWriter?
  /// Whether standard error goes to the journal, with or without `journal`: lines there can have a priority.
  private let isJournal: Bool
  private let logging: LifecycleLogging
  /// An author's own log, in place of the others.
  private let queue: LogQueue?

  init(_ logging: LifecycleLogging, _ environment: ServiceEnvironment, _ queue: LogQueue?) {
    (self.logging, self.queue) = (logging, queue)
    journal = logging == .off || queue != nil ? nil : JournalWriter(environment)
    isJournal = StandardError.isJournal(environment)
  }

  /// For a mock, and tests.
  init(journal: JournalWriter?, logging: LifecycleLogging, queue: LogQueue? = nil) {
    (self.journal, self.logging, self.queue) = (journal, logging, queue)
    isJournal = false
  }

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    switch fact {
    case .ended(let transition, let report, let elapsed, let snapshot):
      if let sentence = transition.row.rejected, !report.isOvertaken, !report.refusals.isEmpty {
        writeRejection(sentence, transition, report, elapsed, snapshot)
      } else {
        if !report.isRetry { write(report.problems, of: transition) }
        writeEnd(of: transition, report, elapsed, snapshot)
      }
      if let warning = report.timeWarning { warn(warning) }
    case .positionChanged(let cause, let snapshot) where snapshot.state != .foreground:
      note(
        isAsked: cause.signal != nil,
        LifecycleLogEntry(
          .info, LifecycleTransition.background.row.messageID,
          "Stays in the background: \(snapshot.reasons.joined(separator: ", ")) (\(cause))",
          self.fields(.background, cause) + self.fields(snapshot)))
    case .problems(let entries): write(entries, of: .post)
    case .settingUp(let time):
      warn(
        "The daemon has been set up for \(time.forReading), and is launched when its set-up returns: not while that waits"
          + " in foreground { } (write addForeground { }), or for a hook.")
    case .warning(let text): warn(text)
    case .info(let text): info(text)
    case .unhealthy(let reason): write("Not healthy: \(reason)", .error)
    case .statusNote(let kind, let text?) where !kind.isOnlyForStatus:
      warn(text.prefix(1).uppercased() + text.dropFirst())
    case .draining(let cause, let delay):
      note(
        LifecycleLogEntry(
          .notice, LifecycleMessageID.draining,
          "Draining for \(delay.forReading), then stopping (\(cause))",
          self.fields(.termination, cause)))
    case .terminating(let cause):
      note(
        LifecycleLogEntry(
          .notice, LifecycleMessageID.stopping, "Stopping (\(cause))",
          self.fields(.termination, cause)))
    default: break
    }
    return nil
  }

  func warn(_ text: String) { write(text, .warning) }

  /// Without a MESSAGE_ID: it explains itself.
  func info(_ text: String) { write(LifecycleLogEntry(.info, nil, text)) }

  func processEnds(_ unsent: [LifecycleFact]) {
    for fact in unsent { receive(fact) }
    queue?.writeRest()
  }

  private func write(_ text: String, _ priority: JournalPriority) {
    write(LifecycleLogEntry(priority, LifecycleMessageID.statusNote, text))
  }

  /// Writes an entry to an author's log or the journal, or as a line.
  private func write(_ entry: LifecycleLogEntry) {
    if let queue {
      queue.add(entry)
    } else if let journal {
      journal.write(entry.journalEntry)
    } else if logging != .off {
      entry.writeLines(isJournal: isJournal)
    }
  }

  // MARK: Entries

  private func write(_ problems: [LifecycleReport.Entry], of transition: LifecycleTransition) {
    for problem in problems {
      write(
        LifecycleLogEntry(
          // `journalctl -p err` shows each hook that did not do its work.
          problem.outcome == .skipped(.overtaken) ? .info : .error, LifecycleMessageID.problem,
          problem.description,
          [("LIFECYCLE_EVENT", transition.row.event)] + self.fields(problem)))
    }
  }

  /// Writes one entry for a rejection and its reasons.
  private func writeRejection(
    _ sentence: String, _ transition: LifecycleTransition, _ report: LifecycleReport,
    _ elapsed: Duration, _ snapshot: LifecycleSnapshot
  ) {
    let failures = report.refusals
    write(report.problems.filter { !$0.isRefusal }, of: transition)
    write(
      LifecycleLogEntry(
        .error, LifecycleMessageID.rejection,
        "\(sentence) after \(elapsed.forReading) (\(report.cause)): "
          + failures.map(\.reason).joined(separator: "; "),
        self.fields(transition, report.cause) + self.fields(snapshot)
          + self.fields(elapsed, problems: failures.count) + failures.flatMap(self.fields)))
  }

  /// Writes the end of a transition. A post, or a notification of late observers, is not a transition.
  private func writeEnd(
    of transition: LifecycleTransition, _ report: LifecycleReport, _ elapsed: Duration,
    _ snapshot: LifecycleSnapshot
  ) {
    if transition == .post || transition == .catchUp { return }
    if transition == .termination, queue != nil || logging == .timelines || logging == .all {
      return writeTimeline(report, snapshot)
    }
    let row = transition.row
    if report.isOvertaken {
      // Without a MESSAGE_ID: the transition did not take place, and each hook has its own entry.
      return note(
        LifecycleLogEntry(
          .info, nil,
          "The stop has overtaken \(row.gerund), after \(elapsed.forReading) (\(report.cause))",
          self.fields(transition, report.cause) + [("LIFECYCLE_OUTCOME", "overtaken")]))
    }
    let failed = report.failures.count
    note(
      // An operator also looks for the end of a reload that was requested by a changed file or a call.
      isAsked: report.cause.signal != nil || transition == .reload,
      LifecycleLogEntry(
        failed == 0 ? transition.priority : .warning,
        // The launch's own means that the daemon is ready.
        transition == .launch && failed > 0 ? nil : row.messageID,
        Self.sentence(transition, report.cause, elapsed, failed) + report.failuresInWords,
        self.fields(transition, report.cause) + self.fields(snapshot)
          + self.fields(elapsed, problems: failed)))
  }

  private static func sentence(
    _ transition: LifecycleTransition, _ cause: LifecycleCause, _ elapsed: Duration, _ failed: Int
  ) -> String {
    switch transition {
    case .launch where failed > 0: "The launch has failed, after \(elapsed.forReading)"
    case .launch: "Started, pid \(getpid()), in \(elapsed.forReading)"
    default: "\(transition.row.done) in \(elapsed.forReading) (\(cause))"
    }
  }

  /// The end of a termination: its timeline, one write or one entry, which is dropped rather than waited for.
  private func writeTimeline(_ report: LifecycleReport, _ snapshot: LifecycleSnapshot) {
    let timeline = LifecycleTimeline(report)
    let failed = report.failures.count
    let priority = failed == 0 ? LifecycleTransition.termination.priority : .warning
    guard queue != nil || journal != nil else {
      // The lines are our own; texts of others in them were escaped as they were put in. Not as an entry: the text of
      // an enumeration among its fields takes longer than the rest of a stop.
      StandardError.writeText("lifecycle: \(timeline)", priority, isJournal: isJournal)
      return
    }
    let budget = timeline.span.budget
    write(
      LifecycleLogEntry(
        priority, LifecycleTransition.termination.row.messageID, hasLines: true,
        timeline.description,
        self.fields(.termination, report.cause) + self.fields(snapshot)
          + self.fields(timeline.duration, problems: failed)
          + (budget.map { [("LIFECYCLE_BUDGET_USEC", $0.inMicroseconds)] } ?? [])))
  }

  /// Writes an entry to an author's log or the journal. Elsewhere rendering its text would cost as much as a delivery: it is
  /// written only with `.all`, or with `.timelines` if an operator has asked for the event.
  private func note(isAsked: Bool = false, _ entry: @autoclosure () -> LifecycleLogEntry) {
    guard queue != nil || journal != nil || logging == .all || isAsked && logging == .timelines
    else { return }
    write(entry())
  }

  // MARK: Fields

  private func fields(_ snapshot: LifecycleSnapshot) -> [JournalField] {
    [("LIFECYCLE_STATE", "\(snapshot.state)")]
      + snapshot.reasons.prefix(LifecycleMachine.shownNames).map {
        ("LIFECYCLE_REASON", VisibleText.excerpt($0, limit: 1000))
      }
  }

  private func fields(_ problem: LifecycleReport.Entry) -> [JournalField] {
    [
      ("LIFECYCLE_OBSERVER", VisibleText.excerpt(problem.observer, limit: 1000)),
      // To search for, without quotation marks.
      ("LIFECYCLE_OUTCOME", problem.outcome == .timedOut ? "timed-out" : problem.outcome.word),
    ]
  }

  private func fields(_ elapsed: Duration, problems: Int) -> [JournalField] {
    [
      ("LIFECYCLE_DURATION_USEC", elapsed.inMicroseconds), ("LIFECYCLE_PROBLEMS", "\(problems)"),
    ]
  }

  private func fields(_ transition: LifecycleTransition, _ cause: LifecycleCause) -> [JournalField]
  {
    var fields: [JournalField] = [
      ("LIFECYCLE_EVENT", transition.row.event), ("LIFECYCLE_CAUSE", cause.description),
    ]
    if case .signal(let signal, let sender, _) = cause.origin {
      fields.append(("LIFECYCLE_SIGNAL", signal.description))
      fields += self.fields(sender)
    }
    return fields
  }

  /// The fields of a sender. Claimed values have other names, so that no filter confuses them with the sender.
  private func fields(_ sender: LifecycleCause.Sender) -> [JournalField] {
    switch sender {
    case .kernel: fields(.process(pid: 0, uid: 0))
    case .process(let pid, let uid):
      [("LIFECYCLE_SENDER_PID", "\(pid)"), ("LIFECYCLE_SENDER_UID", "\(uid)")]
    case .queued(let pid, let uid):
      (pid.map { [("LIFECYCLE_CLAIMED_PID", "\($0)")] } ?? [])
        + (uid.map { [("LIFECYCLE_CLAIMED_UID", "\($0)")] } ?? [])
    case .dispatch, .passedOn: []
    }
  }
}

extension Duration {
  fileprivate var inMicroseconds: String { "\(saturatedNanoseconds / 1000)" }
}

extension LifecycleTransition {
  fileprivate var priority: JournalPriority { row.isNotice ? .notice : .info }
}
