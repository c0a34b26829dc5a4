/// logind, `org.freedesktop.login1`, over a session for the system bus.
///
/// Take a delay lock before you watch, release it when the work before a sleep is done, and take another one
/// after it (systemd's INHIBITOR_LOCKS). Handlers run inside `BusSession.process`. A failure is passed on and
/// ends nothing: the watch goes on when the bus or logind is back. All from org.freedesktop.login1(5).
package struct Login1: Sendable {
  static let service = "org.freedesktop.login1"
  static let manager = BusObject(
    destination: service, path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager")

  let session: BusSession

  /// Asks over this session, which somebody has to process.
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
  ///
  /// - Parameters:
  ///   - operation: What is held back.
  ///   - who: The program, for people who list the locks.
  ///   - why: What it has to do.
  ///   - completion: Gets the lock, or why there is none.
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

  /// Hears of each sleep and each wake-up, once. A sleep that began before the watch, or while the bus was
  /// away, is made up for.
  package func watchSleep(
    _ handler: @escaping @Sendable (Result<SleepEvent, BusError>) -> Void
  ) -> BusWatch {
    let isAsleep = BusMemory(false)
    let hear: @Sendable (Result<Bool, BusError>, BusServiceWatch<SleepEvent>) -> Void = {
      value, watch in
      switch value {
      case .failure(let error): watch.emit(.failure(error))
      case .success(let new):
        if isAsleep.change(to: new) { watch.emit(.success(new ? .willSleep : .didWake)) }
      }
    }
    return BusServiceWatch(Self.service, handler: handler) { connection, watch in
      watch.match(.signal("PrepareForSleep", of: Self.manager), on: connection) { signal in
        hear(signal.flag, watch)
      }
    } read: { connection, watch in
      connection.property("PreparingForSleep", of: Self.manager) { value in
        hear(value.flatMap { $0.asBool("PreparingForSleep") }, watch)
      }
    }.start(on: session)
  }

  /// Hears of each shutdown once, and of each that is called off. Since systemd 255 with its kind; SIGTERM
  /// follows. `systemctl start poweroff.target` is not announced.
  package func watchShutdown(
    _ handler: @escaping @Sendable (Result<ShutdownEvent, BusError>) -> Void
  ) -> BusWatch {
    let isComing = BusMemory(false)
    let hear:
      @Sendable (Result<Bool, BusError>, ShutdownKind?, BusServiceWatch<ShutdownEvent>) -> Void = {
        value, kind, watch in
        switch value {
        case .failure(let error): watch.emit(.failure(error))
        case .success(let new):
          if isComing.change(to: new) {
            watch.emit(.success(new ? .willShutDown(kind) : .calledOff))
          }
        }
      }
    return BusServiceWatch(Self.service, handler: handler) { connection, watch in
      // The one with metadata comes before the plain one, which is a repeat then.
      watch.match(.signal("PrepareForShutdownWithMetadata", of: Self.manager), on: connection) {
        signal in
        hear(signal.flag, ShutdownKind(metadata: signal), watch)
      }
      watch.match(.signal("PrepareForShutdown", of: Self.manager), on: connection) { signal in
        hear(signal.flag, nil, watch)
      }
    } read: { connection, watch in
      connection.property("PreparingForShutdown", of: Self.manager) { value in
        hear(value.flatMap { $0.asBool("PreparingForShutdown") }, nil, watch)
      }
    }.start(on: session)
  }
}

/// What logind says of a suspend or hibernation.
package enum SleepEvent: Sendable, Hashable {
  /// About to sleep; a delay lock holds it back.
  case willSleep
  /// Awake again, or the sleep did not come about.
  case didWake
}

/// What logind says of a shutdown.
package enum ShutdownEvent: Sendable, Hashable {
  /// About to shut down; the kind is `nil` where systemd is older than 255.
  case willShutDown(ShutdownKind?)
  /// It was called off.
  case calledOff
}

/// How the machine goes down; the words are logind's.
package enum ShutdownKind: Sendable, Hashable {
  /// The machine is switched off.
  case powerOff
  /// The machine is started anew.
  case reboot
  /// The machine is stopped and stays on.
  case halt
  /// Another kernel takes over, without the firmware.
  case kexec
  /// Only what runs on the kernel is started anew.
  case softReboot
  /// One that was added to systemd later.
  case other(String)

  init(_ word: String) {
    self =
      switch word {
      // The first is what logind 257 sends, the second what its man page says.
      case "poweroff", "power-off": .powerOff
      case "reboot": .reboot
      case "halt": .halt
      case "kexec": .kexec
      case "soft-reboot": .softReboot
      default: .other(word)
      }
  }

  /// `nil` when it is not there: the shutdown counts, not its metadata.
  init?(metadata signal: BusSignal) {
    guard signal.arguments.count > 1,
      case .string(let word)? = signal.arguments[1].dictionary?["type"]
    else { return nil }
    self.init(word)
  }
}
