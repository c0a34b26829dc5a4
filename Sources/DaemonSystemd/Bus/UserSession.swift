/// What the user of a user service is doing at the machine.
package enum UserSessionState: Sendable, Hashable {
  /// At the machine: the session shown is active and not locked.
  case active
  /// Another session is in front.
  case inactive
  /// The screen is locked.
  case locked
  /// Logged in without a graphical or text session of their own, as a user who lingers.
  case none
}

extension Login1 {
  /// Hears of the state of the user's session: what it is now, then each change. It follows the user's
  /// `Display`, since a user service belongs to no session of its own.
  ///
  /// logind knows no user for a system service: that is a failure, once for each connection.
  package func watchUserSession(
    _ handler: @escaping @Sendable (Result<UserSessionState, BusError>) -> Void
  ) -> BusWatch {
    weak let weakSession = session  // the watch must not keep it
    let read: BusServiceWatch<UserSessionState>.Step = { connection, watch in
      connection.properties(of: Self.ownUser) { user in
        switch user.flatMap(Self.display) {
        case .failure(let error): watch.emit(.failure(error))
        case .success(nil): watch.emit(.success(.none))
        case .success(let path?):
          weakSession?.perform { connection in
            guard case .success(let connection) = connection else { return }
            Self.readSession(path, connection, watch)
          }
        }
      }
    }
    return BusServiceWatch(Self.service, handler: handler) { connection, watch in
      let readAgain: @Sendable () -> Void = {
        weakSession?.perform { if case .success(let connection) = $0 { read(connection, watch) } }
      }
      for member in ["SessionNew", "SessionRemoved"] {
        watch.match(.signal(member, of: Self.manager), on: connection) { _ in readAgain() }
      }
      // Of all users and sessions: signals do not come from "self", and there are few of others.
      for (interface, properties) in [
        (Self.ownUser.interface, ["Display"]), (Self.sessionInterface, ["Active", "LockedHint"]),
      ] {
        let rule = BusMatchRule.propertiesChanged(of: interface, from: Self.service)
        watch.match(rule, on: connection) { signal in
          if signal.changedProperties?.names.isDisjoint(with: properties) != true { readAgain() }
        }
      }
    } read: {
      read($0, $1)
    }.start(on: session)
  }

  private static let ownUser = BusObject(
    destination: service, path: "/org/freedesktop/login1/user/self",
    interface: "org.freedesktop.login1.User")
  private static let sessionInterface = "org.freedesktop.login1.Session"

  /// The session that is shown; `nil` when the user has none.
  private static func display(in user: [String: BusValue]) -> Result<String?, BusError> {
    guard case .structure(let display)? = user["Display"], display.count == 2,
      case .objectPath(let path) = display[1]
    else { return .failure(.malformedReply("logind's user has no Display.")) }
    return .success(path == "/" ? nil : path)
  }

  private static func readSession(
    _ path: String, _ connection: BusConnection, _ watch: BusServiceWatch<UserSessionState>
  ) {
    let object = BusObject(destination: service, path: path, interface: sessionInterface)
    connection.properties(of: object) { properties in
      switch properties {
      // It has ended, and Display will change.
      case .failure(let error) where error.isGone: break
      case .failure(let error): watch.emit(.failure(error))
      case .success(let properties):
        guard case .bool(let isActive)? = properties["Active"],
          case .bool(let isLocked)? = properties["LockedHint"]
        else {
          return watch.emit(.failure(.malformedReply("\(path) has no Active or no LockedHint.")))
        }
        watch.emit(.success(isLocked ? .locked : isActive ? .active : .inactive))
      }
    }
  }
}
