// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The follower of units without which the daemon is in the background: each unit that is not active is a separate
/// reason.
///
/// Until systemd has reported a unit's state, it is no reason, so that the launch does not wait.
final class UnitFollower: BusFollower {
  /// The states of a unit that is working, which includes a reloading one.
  private static let up = ["active", "reloading", "refreshing"]

  private let names: [String]
  /// The problem of each unit.
  private let problems = Mutex<[String: String]>([:])

  init(_ names: [String]) { self.names = names }

  func begin(on session: BusSession, _ inbox: BusInbox) {
    var invalid: [String: String] = [:]
    for name in names {
      guard let unit = try? UnitName(name) else {
        invalid[name] = "\"\(name)\" is not the name of a unit"
        continue
      }
      session.follow(.activeState(unit)) { [weak self] state in
        self?.take(state, of: name, inbox)
        return true
      }
    }
    note(invalid, inbox)
  }

  private func take(
    _ state: Result<BusAnswer, BusError>, of name: String, _ inbox: BusInbox
  ) {
    switch state {
    case .success(let answer):
      let state = answer.text ?? ""
      note([name: nil], inbox)
      let reason = BackgroundReason(name)
      let kind: LifecycleRequest =
        Self.up.contains(state) ? .resume(for: reason) : .pause(for: reason)
      let cause = LifecycleCause(.bus("\(name) is \(state)"))
      inbox.put(.event(LifecycleEvent(kind, cause: cause)))
    case .failure(let error) where error.isUnknownUnit:
      note([name: "there is no unit \(name)"], inbox)
    case .failure(let error):
      if error.isUnavailable { note([name: "no bus for \(name)"], inbox) }
      inbox.warn(error, without: name)
    }
  }

  /// Notes the current problems of units, or `nil`.
  private func note(_ changes: [String: String?], _ inbox: BusInbox) {
    let text: String?? = problems.withLock { problems in
      let before = problems
      for (name, problem) in changes { problems[name] = problem }
      guard problems != before else { return nil }
      let all = problems.sorted { $0.key < $1.key }.map(\.value)
      return .some(all.isEmpty ? nil : "not watched: " + all.joined(separator: ", "))
    }
    if let text { inbox.put(.statusNote(.watched, text)) }
  }
}
