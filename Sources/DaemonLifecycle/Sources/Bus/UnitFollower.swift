import Synchronization
import Systemd

/// Units without which the daemon is in the background: each that is not active is a reason of its own.
///
/// Until systemd has said how a unit is, it is no reason, so that the launch waits for nobody.
final class UnitFollower: BusFollower {
  private let names: [String]
  private let watches = Mutex<[BusWatch]>([])
  /// What is wrong, by unit.
  private let problems = Mutex<[String: String]>([:])

  init(_ names: [String]) { self.names = names }

  func begin(on session: BusSession, _ inbox: BusInbox) {
    let manager = Systemd1(session)
    for name in names {
      do throws(BusError) {
        let unit = try UnitName(name)
        let watch = manager.watchActiveState(of: unit) { [weak self] state in
          self?.take(state, of: name, inbox)
        }
        watches.withLock { $0.append(watch) }
      } catch { note("\(error)", about: name, inbox) }
    }
  }

  private func take(
    _ state: Result<UnitActiveState, BusError>, of name: String, _ inbox: BusInbox
  ) {
    switch state {
    case .success(let state):
      note(nil, about: name, inbox)
      let reason = BackgroundReason(name)
      let kind: LifecycleEvent.Kind =
        state.isUp ? .enterForeground(reason) : .enterBackground(reason)
      let cause = LifecycleCause(.bus("\(name) is \(state)"))
      inbox.put(.event(LifecycleEvent(kind, cause: cause)))
    case .failure(.noSuchUnit): note("there is no unit \(name)", about: name, inbox)
    case .failure(let error): inbox.complain(error, "\(name) is not watched")
    }
  }

  private func note(_ problem: String?, about name: String, _ inbox: BusInbox) {
    let text: String?? = problems.withLock { problems in
      guard problems[name] != problem else { return nil }
      problems[name] = problem
      let all = problems.sorted { $0.key < $1.key }.map(\.value)
      return .some(all.isEmpty ? nil : "not watched: " + all.joined(separator: ", "))
    }
    if let text { inbox.put(.remark(.watched, text)) }
  }
}

extension UnitActiveState {
  /// Whether it does its work; one that reloads does.
  fileprivate var isUp: Bool {
    switch self {
    case .active, .reloading, .refreshing: true
    default: false
    }
  }
}
