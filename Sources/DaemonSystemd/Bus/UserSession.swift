import Synchronization

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
    let follower = UserSessionFollower(session)
    return BusServiceWatch(Self.service, handler: handler) {
      follower.listen($0, $1)
    } read: {
      follower.readUser($0, $1)
    }.start(on: session)
  }
}

/// Follows `user/self` → `Display` → the session's `Active` and `LockedHint`.
private final class UserSessionFollower: Sendable {
  typealias Watch = BusServiceWatch<UserSessionState>

  private struct State {
    /// The session that is followed, and the match for it.
    var path: String?
    var match: BusMatch?
    /// The user's own object, once known.
    var user: String?
  }

  private let state = Mutex(State())
  private let last = BusMemory<UserSessionState?>(nil)
  /// Weak: matches on the session's connection hold this object.
  private weak let session: BusSession?

  init(_ session: BusSession) { self.session = session }

  private static let selfUser = BusObject(
    destination: Login1.service, path: "/org/freedesktop/login1/user/self",
    interface: "org.freedesktop.login1.User")

  private static func object(session path: String) -> BusObject {
    BusObject(
      destination: Login1.service, path: path, interface: "org.freedesktop.login1.Session")
  }

  // MARK: The user

  func listen(_ connection: BusConnection, _ watch: Watch) {
    state.withLock { $0 = State() }
    for member in ["SessionNew", "SessionRemoved"] {
      watch.match(.signal(member, of: Login1.manager), on: connection) { _ in self.again(watch) }
    }
  }

  private func again(_ watch: Watch) {
    session?.perform { if case .success(let connection) = $0 { self.readUser(connection, watch) } }
  }

  func readUser(_ connection: BusConnection, _ watch: Watch) {
    connection.properties(of: Self.selfUser) { properties in
      switch properties {
      case .failure(let error): watch.emit(.failure(error))
      case .success(let properties): self.take(properties, watch)
      }
    }
  }

  private func take(_ properties: [String: BusValue], _ watch: Watch) {
    guard case .structure(let display)? = properties["Display"], display.count == 2,
      case .objectPath(let path) = display[1], case .uint32(let uid)? = properties["UID"]
    else {
      return watch.emit(.failure(.malformedReply("logind's user has no Display or no UID.")))
    }
    session?.perform { connection in
      guard case .success(let connection) = connection else { return }
      self.followUser("/org/freedesktop/login1/user/_\(uid)", connection, watch)
      self.follow(path == "/" ? nil : path, connection, watch)
    }
  }

  /// Signals come from the user's own object, not from "self". Match first, then read.
  private func followUser(_ path: String, _ connection: BusConnection, _ watch: Watch) {
    guard state.withLock({ $0.user != path }) else { return }
    state.withLock { $0.user = path }
    let user = BusObject(
      destination: Login1.service, path: path, interface: Self.selfUser.interface)
    watch.match(.propertiesChanged(of: user), on: connection) { signal in
      if signal.changedProperties?.names.contains("Display") != false { self.again(watch) }
    }
    readUser(connection, watch)
  }

  // MARK: The session

  private func follow(_ path: String?, _ connection: BusConnection, _ watch: Watch) {
    let (old, former) = state.withLock { ($0.match, $0.path) }
    if path != former {
      if let old { watch.cancel(old, on: connection) }
      let match = path.map { path in
        watch.match(.propertiesChanged(of: Self.object(session: path)), on: connection) { signal in
          let names = signal.changedProperties?.names
          guard names?.isDisjoint(with: ["Active", "LockedHint"]) != true else { return }
          self.session?.perform {
            if case .success(let connection) = $0 { self.readSession(path, connection, watch) }
          }
        }
      }
      state.withLock { ($0.match, $0.path) = (match, path) }
    }
    guard let path else { return tell(.none, watch) }
    readSession(path, connection, watch)
  }

  private func readSession(_ path: String, _ connection: BusConnection, _ watch: Watch) {
    connection.properties(of: Self.object(session: path)) { properties in
      // Another session is followed by now, or this one ended and Display will change.
      guard self.state.withLock({ $0.path == path }) else { return }
      switch properties {
      case .failure(let error): if !error.isGone { watch.emit(.failure(error)) }
      case .success(let properties):
        guard case .bool(let isActive)? = properties["Active"],
          case .bool(let isLocked)? = properties["LockedHint"]
        else {
          return watch.emit(.failure(.malformedReply("\(path) has no Active or no LockedHint.")))
        }
        self.tell(isLocked ? .locked : isActive ? .active : .inactive, watch)
      }
    }
  }

  private func tell(_ state: UserSessionState, _ watch: Watch) {
    if last.change(to: state) { watch.emit(.success(state)) }
  }
}
