// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The follower of a user service's session: the daemon is in the background while its user has no session, or only one
/// that is inactive or locked.
final class SessionFollower: BusFollower {
  func begin(on session: BusSession, _ inbox: BusInbox) {
    session.follow(.userSession) { state in
      switch state {
      case .success(let answer):
        let state = answer.userSession
        let kind: LifecycleRequest =
          state == .active ? .resume(for: .session) : .pause(for: .session)
        let cause = LifecycleCause(.bus(Self.phrase(state)))
        inbox.put(.event(LifecycleEvent(kind, cause: cause)))
      case .failure(let error): inbox.warn(error, without: "the user's session")
      }
      return true
    }
  }

  private static func phrase(_ state: UserSessionState) -> String {
    switch state {
    case .active: "the session is active"
    case .inactive: "another session is active"
    case .locked: "the session is locked"
    case .none: "the user has no session"
    }
  }
}
