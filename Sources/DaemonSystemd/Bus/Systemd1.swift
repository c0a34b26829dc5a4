/// The service manager, `org.freedesktop.systemd1`.
///
/// A system service asks over the system bus, a user service over the user bus. "Own" is the unit that this
/// process belongs to; reading needs no privileges. Completions and handlers run inside
/// `BusSession.process`. All from org.freedesktop.systemd1(5).
package struct Systemd1: Sendable {
  package static let service = "org.freedesktop.systemd1"
  static let manager = BusObject(
    destination: service, path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager")
  /// systemd takes "self" for the unit of whoever asks.
  static let ownUnit = BusObject(
    destination: service, path: "/org/freedesktop/systemd1/unit/self",
    interface: "org.freedesktop.systemd1.Unit")
  static let ownService = BusObject(
    destination: service, path: ownUnit.path, interface: "org.freedesktop.systemd1.Service")

  let session: BusSession

  package init(_ session: BusSession) { self.session = session }

  // MARK: The own unit

  /// `TimeoutStopSec=`: how long the daemon has from SIGTERM to its end; `nil` is infinity. Nothing in the
  /// environment says so.
  package func timeoutStop(completion: @escaping @Sendable (Result<Duration?, BusError>) -> Void) {
    session.property("TimeoutStopUSec", of: Self.ownService) { value in
      completion(value.flatMap { $0.asMicroseconds("TimeoutStopUSec") })
    }
  }

  /// What systemd is about to do with the own unit: asked after SIGTERM, `restart` tells a restart from a
  /// `stop`. `nil` when there is no job: somebody else sent the signal.
  package func ownJob(completion: @escaping @Sendable (Result<UnitJob?, BusError>) -> Void) {
    session.perform { connection in
      switch connection {
      case .failure(let error): completion(.failure(error))
      case .success(let connection): job(of: Self.ownUnit, connection, completion)
      }
    }
  }

  private func job(
    of unit: BusObject, _ connection: BusConnection,
    _ completion: @escaping @Sendable (Result<UnitJob?, BusError>) -> Void
  ) {
    // Weak here and below: what waits on a connection must not keep the session that owns it.
    connection.property("Job", of: unit) { [weak session] value in
      switch value {
      case .failure(let error): completion(.failure(error))
      case .success(.structure(let members)):
        guard members.count == 2, case .uint32(let id) = members[0],
          case .objectPath(let path) = members[1]
        else {
          return completion(BusValue.structure(members).wrongType("Job", "a number and a path"))
        }
        guard id != 0 else { return completion(.success(nil)) }
        let job = BusObject(
          destination: Self.service, path: path, interface: "org.freedesktop.systemd1.Job")
        guard let session else { return completion(.failure(.closed)) }
        session.property("JobType", of: job) { type in
          // Over and gone between the two questions.
          if case .failure(let error) = type, error.isGone { return completion(.success(nil)) }
          completion(type.flatMap { $0.asString("JobType") }.map { UnitJob($0) })
        }
      case .success(let other): completion(other.wrongType("Job", "a number and a path"))
      }
    }
  }

  // MARK: Other units

  /// Hears of a unit's state, by systemd's word for it: what it is now, then each change, without repeats, whatever restarts
  /// meanwhile. A unit that systemd does not know is a failure with `BusError.noSuchUnit`, unless it was
  /// there before, as a transient unit that is gone: that one is inactive.
  package func watchActiveState(
    of unit: UnitName, _ handler: @escaping @Sendable (Result<String, BusError>) -> Void
  ) -> BusWatch {
    let object = BusObject(
      destination: Self.service, path: unit.objectPath, interface: Self.ownUnit.interface)
    weak let weakSession = session  // the watch must not keep it
    let read: BusServiceWatch<String>.Step = { connection, watch in
      Self.subscribe(connection, watch)
      connection.properties(of: object) { properties in
        watch.emit(
          properties.flatMap { Self.activeState(in: $0, of: unit, wasThere: watch.last != nil) })
      }
    }
    return BusServiceWatch(Self.service, handler: handler) { connection, watch in
      let rule = BusMatchRule.propertiesChanged(
        of: object.interface, from: object.destination, at: object.path)
      watch.match(rule, on: connection) { signal in
        guard let changed = signal.changedProperties else {
          return watch.emit(.failure(.malformedReply("A PropertiesChanged of \(unit) is none.")))
        }
        guard changed.names.contains("ActiveState") else { return }
        if let value = changed.values["ActiveState"] {
          return watch.emit(value.asString("ActiveState"))
        }
        weakSession?.perform { connection in
          if case .success(let connection) = connection { read(connection, watch) }
        }
      }
    } read: {
      read($0, $1)
    }.start(on: session)
  }

  private static func activeState(
    in properties: [String: BusValue], of unit: UnitName, wasThere: Bool
  ) -> Result<String, BusError> {
    guard let load = properties["LoadState"], let state = properties["ActiveState"] else {
      return .failure(.malformedReply("\(unit) has no LoadState or no ActiveState."))
    }
    return load.asString("LoadState").flatMap { load in
      load == "not-found" && !wasThere
        ? .failure(.noSuchUnit(unit.description)) : state.asString("ActiveState")
    }
  }

  /// Without it systemd sends almost no signals. Asking again is allowed, and needed after it restarted.
  private static func subscribe(_ connection: BusConnection, _ watch: BusServiceWatch<String>) {
    connection.call(manager.method("Subscribe")) { reply in
      guard case .failure(let error) = reply else { return }
      if case .call(_, "org.freedesktop.systemd1.AlreadySubscribed", _, _) = error { return }
      watch.emit(.failure(error))
    }
  }
}
