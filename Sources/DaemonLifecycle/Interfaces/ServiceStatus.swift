// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The notifications to systemd for each fact, and the line that an operator reads in `systemctl status`.
///
/// Pure: no socket, no clock, no thread. It contains all rules of the protocol:
/// - READY ends a launch or a reload; it is never sent before the launch, and never after STOPPING.
/// - RELOADING carries the time, taken after the signal, and is always answered: by READY, or by STOPPING.
/// - STOPPING is sent once.
struct ServiceStatus {
  /// Whether the watchdog is pinged.
  private let pings: Bool
  /// Whether READY was sent, and STOPPING was not.
  private var isServing = false
  private var isReloading = false
  private var stopping: LifecycleCause?
  /// How long the daemon still serves, after STOPPING was sent; `nil` otherwise.
  private var stopDelay: Duration?
  /// Whether the exit status has been sent, after which no other status is.
  private var isOver = false
  private var snapshot = LifecycleSnapshot(state: .launching, reasons: [])
  /// The time and cause of the current state: `2026-11-21 11:12:03 (SIGUSR1 from pid 1 uid 0)`.
  private var since = ""
  /// The notes for the operator besides the state, in order.
  private var notes: [(kind: StatusNote, text: String)] = []
  /// The last status that was sent, so that none is sent twice.
  private var lastStatus = ""

  init(pings: Bool = true) { self.pings = pings }

  /// Returns the message for a fact at a time of day; empty when there is nothing to send.
  mutating func fields(for fact: LifecycleFact, at clock: String) -> [NotifyField] {
    switch fact {
    case .settingUp: status("setting up")
    case .began(let transition, let cause, let time): began(transition, cause, time)
    case .progress(let progress): progressed(progress)
    case .ended(let transition, let report, _, let snapshot):
      ended(transition, report, snapshot, clock)
    case .positionChanged(let cause, let snapshot): moved(to: snapshot, cause, clock)
    case .launched: launched()
    case .draining(let cause, let delay): stops(cause, after: delay)
    case .terminating(let cause): stops(cause)
    case .unmappedReload(let time): unmappedReload(clock, time)
    case .extended(let duration): [.extendTimeout(duration)]
    case .healthy: healthy()
    case .recovered: isServing ? [.custom(name: "RESTART_RESET", value: "1")] : []
    case .unhealthy(let reason): statusNote(.health, "not healthy: \(reason)")
    case .statusNote(let kind, let text): statusNote(kind, text)
    case .problems(let entries): statusNote(.problem, Self.text(of: entries))
    case .terminated(let exit): terminated(exit)
    case .closed: closed()
    case .warning, .info, .readyToSleep: []
    }
  }

  // MARK: Facts

  private mutating func began(
    _ transition: LifecycleTransition, _ cause: LifecycleCause, _ time: MonotonicTime
  ) -> [NotifyField] {
    switch transition {
    case .launch: return status("launching")
    case .reload where isServing:
      isReloading = true
      return [.reloading(at: time.sinceBoot)] + status("reloading: \(cause)")
    default: return []
    }
  }

  private mutating func progressed(_ progress: LifecycleProgress) -> [NotifyField] {
    // A transition that the termination has overtaken counts as part of the stop.
    let isOvertaken = stopping != nil && progress.transition != .termination
    return status((isOvertaken ? "stopping, but still " : "") + progress.description)
  }

  private mutating func ended(
    _ transition: LifecycleTransition, _ report: LifecycleReport, _ reached: LifecycleSnapshot,
    _ clock: String
  ) -> [NotifyField] {
    note(report, of: transition)
    note(reached, report.cause, clock)
    if transition == .reload, !report.isOvertaken, stopping == nil {
      // Shorter than `text(of:)`, since it stays until the next reload.
      let reasons = report.refusals.prefix(3).map(\.reason).joined(separator: "; ")
      setNote(
        .reload, reasons.isEmpty ? "reloaded \(clock)" : "reload rejected \(clock): \(reasons)")
    }
    // The status of a launch goes with READY, that of a stop with STOPPING.
    guard isServing else { return [] }
    if isReloading, transition == .reload {
      isReloading = false
      return [.ready] + status()
    }
    return status()
  }

  /// Notes the hooks that did not complete: failed saves until all state is saved, observers that did not enter the
  /// foreground until all have, and the rest until the next transition.
  private mutating func note(_ report: LifecycleReport, of transition: LifecycleTransition) {
    let problems = report.problems
    func update(_ note: StatusNote, isOver: Bool) {
      let entries = problems.filter { $0.note == note }
      if isOver || !entries.isEmpty { setNote(note, Self.text(of: entries)) }
    }
    update(.unsaved, isOver: !report.isOvertaken && transition.row.steps.contains(where: \.isSave))
    update(.unentered, isOver: report.isRetry)
    update(.problem, isOver: ![.post, .pressure, .catchUp].contains(transition))
  }

  private mutating func moved(
    to reached: LifecycleSnapshot, _ cause: LifecycleCause, _ clock: String
  ) -> [NotifyField] {
    note(reached, cause, clock)
    // The end of a reload sends it.
    return isServing && !isReloading ? status() : []
  }

  private mutating func note(
    _ reached: LifecycleSnapshot, _ cause: LifecycleCause, _ clock: String
  ) {
    if reached.unentered.isEmpty { setNote(.unentered, nil) }
    guard reached != snapshot || since.isEmpty else { return }
    snapshot = reached
    since = "\(clock) (\(cause))"
  }

  private mutating func launched() -> [NotifyField] {
    guard stopping == nil else { return [] }
    isServing = true
    return [.ready] + status()
  }

  /// Answers an unmapped reload in one message: it ends as soon as it has begun.
  private mutating func unmappedReload(_ clock: String, _ time: MonotonicTime) -> [NotifyField] {
    guard isServing, !isReloading else { return [] }
    setNote(.reload, "nothing reloaded \(clock): the signal map has no reload")
    return [.reloading(at: time.sinceBoot), .ready] + status()
  }

  /// Answers a reload that will not end any more.
  private mutating func closed() -> [NotifyField] {
    guard isReloading, isServing else { return [] }
    isReloading = false
    return [.ready] + status("the reload was cut short: the lifecycle is gone")
  }

  /// Announces a stop once: as its drain begins, or else its termination.
  private mutating func stops(_ cause: LifecycleCause, after delay: Duration? = nil)
    -> [NotifyField]
  {
    stopDelay = delay
    if stopping != nil { return status() }
    (stopping, isServing) = (cause, false)
    // A stop has nothing to do with the last reload.
    setNote(.reload, nil)
    return [.stopping] + status()
  }

  private mutating func healthy() -> [NotifyField] {
    let isNoted = notes.contains { $0.kind == .health }
    return (pings ? [.watchdog] : []) + (isNoted ? statusNote(.health, nil) : [])
  }

  private mutating func setNote(_ kind: StatusNote, _ text: String?) {
    let place = notes.partitioningIndex { $0.kind >= kind }
    if place < notes.count, notes[place].kind == kind { notes.remove(at: place) }
    if let text { notes.insert((kind, text), at: place) }
  }

  private mutating func statusNote(_ kind: StatusNote, _ text: String?) -> [NotifyField] {
    setNote(kind, text)
    // The end of a launch or a reload sends it.
    return isServing && !isReloading || stopping != nil ? status() : []
  }

  private mutating func terminated(_ exit: LifecycleExit) -> [NotifyField] {
    let problems = (exit.failedLaunch?.failures ?? []) + exit.report.failures
    let text = Self.text(of: problems).map { "; \($0)" } ?? ""
    defer { isOver = true }
    return [.exitStatus(exit.exitStatus)]
      + status("ended with status \(exit.exitStatus), \(exit.report.cause)\(text)")
  }

  // MARK: Status

  /// Further notes are only counted: each change renders all that are shown.
  private static let shownNotes = 16

  /// The state, its time and cause, and the notes; nothing when that was sent already.
  private mutating func status() -> [NotifyField] {
    let draining = stopDelay.map { "draining for \($0.forReading), then " } ?? ""
    var text = stopping.map { "\(draining)stopping: \($0)" } ?? phrase
    // Without a slice, whose type would be made at run time.
    for index in 0..<min(notes.count, Self.shownNotes) { text += "; \(notes[index].text)" }
    if notes.count > Self.shownNotes { text += "; and \(notes.count - Self.shownNotes) more" }
    return status(text)
  }

  private mutating func status(_ text: String) -> [NotifyField] {
    guard !isOver, text != lastStatus else { return [] }
    lastStatus = text
    return [.status(text)]
  }

  private var phrase: String {
    switch snapshot.state {
    case .launching: return "launching"
    case .background:
      let reasons = snapshot.reasons.joined(separator: ", ")
      return "background\(reasons.isEmpty ? "" : ", \(reasons),") since \(since)"
    case .foreground:
      let missing = snapshot.unentered.joined(separator: ", ")
      return "foreground\(missing.isEmpty ? "" : " without \(missing)") since \(since)"
    case .terminated: return "terminated"
    }
  }

  private static func text(of entries: [LifecycleReport.Entry]) -> String? {
    if entries.isEmpty { return nil }
    let shown = entries.prefix(3).map(\.description).joined(separator: "; ")
    return entries.count > 3 ? "\(shown); and \(entries.count - 3) more" : shown
  }
}

extension LifecycleReport.Entry {
  /// The kind of note for a hook that did not complete. The verdict on a reload has the refusals.
  fileprivate var note: StatusNote {
    if isRefusal { return .reload }
    return switch NotificationKind(notification) {
    case .shouldSaveState: .unsaved
    case .willEnterForeground: .unentered
    default: .problem
    }
  }
}
