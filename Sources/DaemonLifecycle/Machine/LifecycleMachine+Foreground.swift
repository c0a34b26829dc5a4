// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// Who is in the foreground with the daemon, and who is not.
extension LifecycleMachine {
  /// Whether work must not begin now, since it may need an observer before it that has not entered.
  mutating func isHeldBack(_ work: Member, _ step: LifecycleStep) -> Bool {
    step.kind == .willEnterForeground
      && unentered.first(in: registry.members).map(work.follows) ?? false
  }

  /// Notes that a hook has brought its observer into the foreground, perhaps after it was abandoned. A hook that ended when
  /// it was cancelled may not have, and is called again.
  mutating func entered(_ call: Call) {
    guard call.step.kind == .willEnterForeground else { return }
    unentered.remove([call.observer])
    // It may have been listed while the hook still ran.
    if !registry.reentering.isEmpty { registry.reentering.removeAll { $0 == call.observer } }
  }

  var isEntering: Bool {
    calls.current.flatMap { calls[$0].step.kind } == .willEnterForeground
  }

  /// Has the observers that are not in the foreground with the daemon notified of it again, and the rounds after them.
  mutating func enterAgain() {
    guard registry.isServing, !isEntering else { return }
    // A body that was not ready in time goes on, or is restarted.
    registry.reentering = unentered.retried.filter { works[$0]?.goesOn != true }
  }

  /// Begins work that nothing holds back any more, plans a retry of what has failed and does not still run, and notes once
  /// for the operator that the daemon is not ready.
  mutating func settleForeground(_ cause: LifecycleCause? = nil) {
    guard registry.isServing, !isEntering else { return }
    for id in unentered.held {
      if !registry.reentering.contains(id), let work = registry.members[id],
        !isHeldBack(work, .kind(.willEnterForeground))
      {
        registry.reentering.append(id)
      }
    }
    if unentered.failed.contains(where: {
      registry.members.progress(of: $0)?.isBusy == false && works[$0]?.goesOn != true
    }) {
      unentered.planRetry(at: now)
    }
    if unentered.isAnnounced == unentered.isEmpty {
      unentered.isAnnounced.toggle()
      unentered.hasNews = unentered.hasNews || unentered.isEmpty
      effects.publish(unentered.isEmpty ? .info("Ready again.") : notReady)
    }
    guard unentered.hasNews else { return }
    unentered.hasNews = false
    effects.publish(.positionChanged(cause ?? LifecycleCause(.lateObserver), snapshot))
  }

  var notReady: LifecycleFact {
    let names = snapshot.unentered.joined(separator: ", ")
    let retries =
      " Retrying in \(Unentered.firstPause.forReading), then less often, at least every \(Unentered.longestPause.forReading)."
    return .warning(
      "Not ready without \(names).\(unentered.deadline == .distantFuture ? "" : retries)")
  }

  // MARK: In words

  /// More than these are a number: each change costs as much as what is shown.
  static let shownNames = 16

  var snapshot: LifecycleSnapshot {
    func names(_ shown: [String], of count: Int) -> [String] {
      count > Self.shownNames ? shown + ["\(count - Self.shownNames) more"] : shown
    }
    let reasons = registry.backgroundReasons
    var snapshot = LifecycleSnapshot(
      state: registry.state,
      reasons: names(reasons.prefix(Self.shownNames).map(\.name), of: reasons.count))
    guard registry.state == .foreground, !unentered.isEmpty else { return snapshot }
    let missing = [unentered.failed, unentered.held, unentered.absent].joined()
      .prefix(Self.shownNames).compactMap { id in
        registry.members[id].map { member in
          "\(member.name)" + (works[id]?.lack.map { " (\($0))" } ?? "")
        }
      }
    snapshot.unentered = names(missing, of: unentered.count)
    return snapshot
  }
}
