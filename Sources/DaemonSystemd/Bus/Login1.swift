/// logind, `org.freedesktop.login1`, over a session for the system bus.
///
/// Take a delay lock before you watch, release it when the work before a sleep is done, and take another one
/// after it (systemd's INHIBITOR_LOCKS). Handlers run inside `BusSession.process`. A failure is passed on and
/// ends nothing: the watch goes on when the bus or logind is back. All from org.freedesktop.login1(5).
package struct Login1: Sendable {
  package static let service = "org.freedesktop.login1"
  static let manager = BusObject(
    destination: service, path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager")

  let session: BusSession

  package init(_ session: BusSession) { self.session = session }

  // MARK: Inhibitor locks

  /// What a delay lock holds back; the words are logind's.
  package enum Operation: String, Sendable {
    /// Power-off, reboot, halt and kexec.
    case shutdown
    /// Suspend and hibernation.
    case sleep
  }

  /// Asks for a delay lock, which holds the operation back until it is closed, for `InhibitDelayMaxUSec` at most.
  ///
  /// Without root and polkit the answer is a `BusError` with `isAccessDenied`: go on without. A lock whose asker is
  /// gone by then is released.
  package func inhibit(
    _ operation: Operation, who: String, why: String,
    completion: @escaping @Sendable (Result<BusDescriptor, BusError>) -> Void
  ) {
    let arguments = [operation.rawValue, who, why, "delay"]
    session.call(Self.manager.method("Inhibit"), arguments: arguments) { reply in
      completion(
        reply.flatMap { values in
          guard values.count == 1, case .descriptor(let descriptor) = values[0] else {
            return .failure(
              .malformedReply("logind's answer to Inhibit is not one file descriptor."))
          }
          return .success(descriptor)
        })
    }
  }

  /// For how long a delay lock can hold the machine back.
  package func inhibitDelayMax(
    completion: @escaping @Sendable (Result<Duration, BusError>) -> Void
  ) {
    session.property("InhibitDelayMaxUSec", of: Self.manager) { value in
      completion(
        value.flatMap { $0.asMicroseconds("InhibitDelayMaxUSec") }.map { $0 ?? .seconds(Int64.max) }
      )
    }
  }

  // MARK: Sleep and shutdown

  /// Hears of each sleep (true) and each wake-up (false), once. A sleep that began before the watch, or while the bus was
  /// away, is made up for. A sleep that does not come about ends as one that does.
  package func watchSleep(
    _ handler: @escaping @Sendable (Result<Bool, BusError>) -> Void
  ) -> BusWatch {
    BusServiceWatch(Self.service, first: false, handler: handler) { connection, watch in
      watch.match(.signal("PrepareForSleep", of: Self.manager), on: connection) { signal in
        watch.emit(signal.flag)
      }
    } read: { connection, watch in
      connection.property("PreparingForSleep", of: Self.manager) { value in
        watch.emit(value.flatMap { $0.asBool("PreparingForSleep") })
      }
    }.start(on: session)
  }

  /// Hears of each shutdown once, and of each that is called off. Since systemd 255 with its kind; SIGTERM
  /// follows. `systemctl start poweroff.target` is not announced.
  package func watchShutdown(
    _ handler: @escaping @Sendable (Result<ShutdownEvent, BusError>) -> Void
  ) -> BusWatch {
    let hear: @Sendable (Result<Bool, BusError>, String?, BusServiceWatch<ShutdownEvent>) -> Void =
      {
        isComing, kind, watch in
        watch.emit(
          isComing.map { isComing in
            guard isComing else { return .calledOff }
            // The one with metadata comes before the plain one, which is a repeat then.
            guard case .willShutDown(let known)? = watch.last else { return .willShutDown(kind) }
            return .willShutDown(known)
          })
      }
    return BusServiceWatch(Self.service, first: .calledOff, handler: handler) { connection, watch in
      watch.match(.signal("PrepareForShutdownWithMetadata", of: Self.manager), on: connection) {
        hear($0.flag, $0.shutdownKind, watch)
      }
      watch.match(.signal("PrepareForShutdown", of: Self.manager), on: connection) {
        hear($0.flag, nil, watch)
      }
    } read: { connection, watch in
      connection.property("PreparingForShutdown", of: Self.manager) { value in
        hear(value.flatMap { $0.asBool("PreparingForShutdown") }, nil, watch)
      }
    }.start(on: session)
  }
}

package enum ShutdownEvent: Sendable, Hashable {
  /// About to shut down; logind's word for how is `nil` where systemd is older than 255.
  case willShutDown(String?)
  case calledOff
}

extension BusSignal {
  /// `nil` when it is not there: the shutdown counts, not its metadata.
  var shutdownKind: String? {
    guard arguments.count > 1, case .string(let word)? = arguments[1].dictionary?["type"]
    else { return nil }
    return word
  }
}
