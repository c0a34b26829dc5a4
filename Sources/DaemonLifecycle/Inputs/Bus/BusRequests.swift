// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// What is read from systemd and followed there. Sources: org.freedesktop.systemd1(5), org.freedesktop.login1(5).
// Reading needs no privileges. systemd and logind take "self" for the unit, and the user, of the process that asks.
private let ownUnit = "/org/freedesktop/systemd1/unit/self"
private let ownUser = "/org/freedesktop/login1/user/self"

extension BusRequest {
  /// The time that systemd allows for a stop of this service; the environment does not contain it.
  ///
  /// The query is repeated until systemd has replied, since without the reply a stop may end in SIGKILL before state is
  /// saved; and after a re-execution of systemd, which reads the unit again.
  static func stopTimeout(_ inbox: BusInbox) -> BusRequest {
    let subject = "TimeoutStopSec="
    // A shorter restart of systemd is not worth a line in the log.
    let patience = Duration.seconds(2)
    var isKnown = false
    var failingSince: MonotonicTime?
    return BusRequest(
      .systemd, query: { .get("TimeoutStopUSec", of: ownUnit, "Service", .systemd) },
      reply: { reply, _ in
        switch reply {
        case .success(let values):
          guard case .variant(.uint64(let time))? = values.only else { return .malformed }
          (isKnown, failingSince) = (true, nil)
          inbox.put(.stopTimeout(duration(microseconds: time)))
          inbox.settle(subject)
          return .done
        case .failure(let error):
          let now = MonotonicTime.now()
          let since = failingSince ?? now
          failingSince = since
          if !isKnown, since.duration(to: now) >= patience { inbox.warn(error, without: subject) }
          return .again
        }
      }, failure: { if !isKnown { inbox.warn($0, without: subject) } })
  }

  /// systemd's job for this service, which distinguishes a restart from a stop. It is read when the termination begins.
  static func unitJob(_ inbox: BusInbox) -> BusRequest {
    BusRequest(
      .systemd, isOnDemand: true, query: { .get("Job", of: ownUnit, "Unit", .systemd) },
      reply: { reply, _ in
        switch (try? reply.get())?.only {
        // There is no job.
        case .variant(.pair(.uint32(0), .path)): inbox.put(.unitJob(nil))
        case .variant(.pair(.uint32, .path(let path))):
          return .call(.get("JobType", of: path, "Job", .systemd))
        case .variant(.string(let type)): inbox.put(.unitJob(UnitJob(VisibleText.line(type))))
        // Unknown, or over between the two calls.
        default: inbox.put(.unitJob(nil))
        }
        return .done
      }, failure: { _ in inbox.put(.unitJob(nil)) })
  }

  /// The machine's sleep or shutdown, which a delay lock delays until the hooks have ended, if logind grants one; that
  /// requires root or a polkit rule. One that began earlier, or while the bus was unavailable, is reported later. A
  /// shutdown is announced before SIGTERM; `systemctl start poweroff.target` is not announced.
  ///
  /// The lock is taken before the state is read: a sleep that begins between the two waits.
  static func operation(_ lock: DelayLock, _ inbox: BusInbox) -> BusRequest {
    let subject = "the machine's \(lock.operation)"
    let signal = lock.operation == .sleep ? "PrepareForSleep" : "PrepareForShutdown"
    let property = lock.operation == .sleep ? "PreparingForSleep" : "PreparingForShutdown"
    let readLimit = BusCall.get(
      "InhibitDelayMaxUSec", of: BusService.logind.path, "Manager", .logind)
    let readState = BusCall.get(property, of: BusService.logind.path, "Manager", .logind)
    var limit = Duration.seconds(5)
    var isUnderWay = false
    var isLockFinal = true
    func become(_ value: Bool, _ kind: String? = nil) {
      if value == isUnderWay { return }
      isUnderWay = value
      lock.setAnnounced(value)
      switch (lock.operation, value) {
      case (.sleep, true):
        // A tenth is kept for the way back to logind.
        if lock.isHeld { inbox.put(.sleepDelay(limit - limit / 10)) }
        inbox.put(.suspend, "the machine is about to sleep")
      case (.sleep, false): inbox.put(.wakeUp, "the machine has woken up")
      case (.shutdown, true):
        inbox.put(.saveState, "the machine is about to \(shutdownPhrase(kind))")
      case (.shutdown, false): break
      }
    }
    return BusRequest(
      .logind,
      // Since systemd 255 the first announces a shutdown with its kind, before the plain one.
      matches: [.manager(signal + "WithMetadata"), .manager(signal)],
      query: {
        isLockFinal = true
        return lock.request ?? readLimit
      },
      reply: { reply, call in
        if call.member == DelayLock.member {
          isLockFinal = lock.receive(reply)
          return .call(readLimit)
        }
        switch (reply, (try? reply.get())?.only) {
        case (_, .variant(.uint64(let time))) where call == readLimit:
          limit = duration(microseconds: time)
        case (_, _) where call == readLimit: break
        case (_, .variant(.bool(let value))): become(value)
        case (.failure(let error), _): inbox.warn(error, without: subject)
        default: return .malformed
        }
        return call == readLimit ? .call(readState) : isLockFinal ? .done : .again
      },
      signal: { _, values in
        guard case .bool(let value)? = values.first else { return .malformed }
        // The operation counts, whatever its metadata are.
        if values.count == 2, case .string(let kind)? = values[1].properties?["type"] {
          become(value, kind)
        } else {
          become(value)
        }
        // When it is over, the next lock is taken.
        return value ? .done : .again
      }, failure: { inbox.warn($0, without: subject) })
  }

  /// The session of a user service's user: the daemon is in the background while there is none, or only one that is
  /// inactive or locked. logind knows no user for a system service, which is an error.
  static func session(_ inbox: BusInbox) -> BusRequest {
    let subject = "the user's session"
    let properties: Set = ["Display", "Active", "LockedHint"]
    var last = ""
    func become(_ fact: String, isActive: Bool = false) {
      if fact == last { return }
      last = fact
      inbox.put(isActive ? .resume(for: .session) : .pause(for: .session), fact)
    }
    return BusRequest(
      .logind,
      // Of all users and sessions: signals do not come from "self", and there are few of others.
      matches: [
        .manager("SessionNew"), .manager("SessionRemoved"),
        .changes(of: nil, BusService.logind.interface("User")),
        .changes(of: nil, BusService.logind.interface("Session")),
      ],
      query: { .getAll(of: ownUser, "User", .logind) },
      reply: { reply, call in
        switch reply {
        case .success(let values):
          let read = values.only?.properties ?? [:]
          if case .pair(_, .path(let path))? = read["Display"], call.path == ownUser {
            if path != "/" { return .call(.getAll(of: path, "Session", .logind)) }
            become("the user has no session")
          } else if case .bool(let isActive)? = read["Active"],
            case .bool(let isLocked)? = read["LockedHint"], call.path != ownUser
          {
            become(
              isLocked
                ? "the session is locked"
                : isActive ? "the session is active" : "another session is active",
              isActive: isActive && !isLocked)
          } else {
            return .malformed
          }
        // A session that has ended between the two calls: the user's will change.
        case .failure(let error) where error.kind == .gone && call.path != ownUser: break
        case .failure(let error): inbox.warn(error, without: subject)
        }
        return .done
      },
      signal: { _, values in
        guard let names = changedProperties(values) else { return .again }
        return names.isDisjoint(with: properties) ? .done : .again
      }, failure: { inbox.warn($0, without: subject) })
  }

  /// A unit without which the daemon is in the background. Until systemd has reported its state, it is no reason, so
  /// that the launch does not wait. A unit that systemd does not know is a problem, unless it existed before, as a
  /// transient unit: that one is inactive.
  static func unit(_ unit: UnitName, _ inbox: BusInbox) -> BusRequest {
    let name = unit.description
    var last = ""
    func become(_ state: String) {
      inbox.setProblem(nil, of: name)
      if state == last { return }
      last = state
      // "reloading" and "refreshing" ones work.
      let isUp = ["active", "reloading", "refreshing"].contains(state)
      let reason = BackgroundReason(name)
      inbox.put(
        isUp ? .resume(for: reason) : .pause(for: reason),
        "\(name) is \(VisibleText.line(state))")
    }
    let subscribe = BusCall(
      "Subscribe", of: BusService.systemd.path, BusService.systemd.interface("Manager"), .systemd)
    return BusRequest(
      .systemd,
      matches: [.changes(of: unit.objectPath, BusService.systemd.interface("Unit"))],
      // Without it systemd sends almost no signals. It may be repeated, and must be after a restart of systemd.
      query: { subscribe },
      reply: { reply, call in
        switch reply {
        case .success where call == subscribe: break
        case .success(let values):
          let read = values.only?.properties ?? [:]
          guard case .string(let load)? = read["LoadState"],
            case .string(let state)? = read["ActiveState"]
          else { return .malformed }
          if load == "not-found", last.isEmpty {
            inbox.setProblem("there is no unit \(name)", of: name)
          } else {
            become(state)
          }
        case .failure(let error) where error.name.hasSuffix(".AlreadySubscribed"): break
        case .failure(let error): inbox.warn(error, without: name)
        }
        return call == subscribe ? .call(.getAll(of: unit.objectPath, "Unit", .systemd)) : .done
      },
      signal: { _, values in
        guard let names = changedProperties(values) else { return .malformed }
        if case .string(let state)? = values[1].properties?["ActiveState"] {
          become(state)
          return .done
        }
        return names.contains("ActiveState") ? .again : .done
      },
      failure: { error in
        if error.kind == .unavailable { inbox.setProblem("no bus for \(name)", of: name) }
        inbox.warn(error, without: name)
      })
  }
}

extension BusMatch {
  fileprivate static func manager(_ member: String) -> BusMatch {
    BusMatch(member, of: BusService.logind.path, BusService.logind.interface("Manager"))
  }
}

/// The names of the properties in a `PropertiesChanged`: those with a new value, and those that have to be read again.
private func changedProperties(_ values: [BusValue]) -> Set<String>? {
  guard values.count == 3, let changed = values[1].properties, case .list(let outdated) = values[2]
  else { return nil }
  var names = Set(changed.keys)
  for case .string(let name) in outdated { names.insert(name) }
  return names
}

/// A time span of systemd's, of which the longest is its infinity.
private func duration(microseconds: UInt64) -> Duration {
  if microseconds == .max { return .seconds(Int64.max) }
  return .seconds(Int64(microseconds / 1_000_000)) + .microseconds(Int64(microseconds % 1_000_000))
}

private func shutdownPhrase(_ kind: String?) -> String {
  switch kind {
  // The first is what logind 257 sends, the second what its man page says.
  case "poweroff", "power-off": "power off"
  case "reboot": "reboot"
  case "halt": "halt"
  case "kexec": "start another kernel"
  case "soft-reboot": "restart its user space"
  case let kind?: "shut down (\(VisibleText.line(kind)))"
  case nil: "shut down"
  }
}
