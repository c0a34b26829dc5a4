// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// The requests to systemd, for values to read and follow; `SleepFollower` has the machine's sleep. Source:
// org.freedesktop.systemd1(5). Reading needs no privileges. systemd takes "self" for the unit of the process that asks.
private let units = "/org/freedesktop/systemd1/unit/"
private let (systemd, manager) = (BusService.systemd, BusService.systemd.interface("Manager"))
/// Without this call systemd sends almost no signals. It may be repeated, and must be after a restart of systemd.
private let subscribe = BusCall("Subscribe", of: systemd.path, manager, systemd)

extension BusRequest {
  /// The time that systemd allows for a stop of this service, which the environment does not contain; or for a stop of the
  /// user's service manager, which ends a user's services when the user has logged out and when the machine shuts down.
  ///
  /// The query is repeated until systemd has replied, since without the reply a stop may end in SIGKILL before state is
  /// saved; after a re-execution of systemd; and at each `systemctl daemon-reload`, which applies a change of the unit to the
  /// running service, even while it stops. A query that is sent as the reload begins is answered after it.
  static func stopTimeout(_ inbox: BusInbox, ofUserManager unit: String? = nil) -> BusRequest {
    let subject = "TimeoutStopSec=" + (unit.map { " of \($0)" } ?? "")
    // A shorter restart of systemd is not worth a line in the log.
    let patience = Duration.seconds(2)
    var isKnown = false
    var failingSince: MonotonicTime?
    let path = units + (unit.map(label) ?? "self")
    let query = BusCall.get("TimeoutStopUSec", of: path, "Service", systemd)
    let reload = BusMatch("Reloading", of: systemd.path, manager, systemd)
    return BusRequest(systemd, matches: [reload], query: subscribe) { event in
      switch event {
      case .reply(_, to: subscribe), .failure(_, of: subscribe): return .call(query)
      case .reply(let values, _):
        guard case .variant(.uint64(let time))? = values.only else { return .malformed }
        (isKnown, failingSince) = (true, nil)
        inbox.put(.systemd(.stopTimeout(duration(microseconds: time), isManagers: unit != nil)))
        inbox.settle(subject)
      // The process is in a scope: of `systemd-run --scope`, or a session's.
      case .failure(let error, of: query) where error.name.hasSuffix(".UnknownProperty"):
        return .call(.get("TimeoutStopUSec", of: path, "Scope", systemd))
      case .failure(let error, let call):
        let now = MonotonicTime.now()
        let since = failingSince ?? now
        if call != nil { failingSince = since }
        if !isKnown, call == nil || since.duration(to: now) >= patience {
          inbox.warn(error, without: subject)
        }
        return .again
      case .signal:
        inbox.put(.systemd(.managerReload))
        return .again
      }
      return .done
    }
  }

  /// systemd's job for this service, which distinguishes a restart from a stop. It is read when the drain, and
  /// when the termination, begins.
  static func unitJob(_ inbox: BusInbox) -> BusRequest {
    BusRequest(
      .systemd, isOnDemand: true, query: .get("Job", of: units + "self", "Unit", .systemd)
    ) { event in
      // `nil`: there is no job, it is unknown, or it ended between the two calls.
      var job: UnitJob?
      if case .reply(let values, _) = event {
        switch values.only {
        case .variant(.pair(.uint32(let id), .path(let path))) where id != 0:
          return .call(.get("JobType", of: path, "Job", .systemd))
        case .variant(.string(let type)): job = UnitJob(rawValue: VisibleText.excerpt(type))
        default: break
        }
      }
      inbox.put(.unitJob(job))
      return .done
    }
  }

  /// logind's block lock against the machine's sleep, and against its shutdown if that is allowed, too: each has a privilege
  /// of its own. It is held until the request is released.
  static func awake(because reason: String, request: UInt64, _ inbox: BusInbox) -> BusRequest {
    let calls = ["sleep:shutdown", "sleep"].map {
      BusCall.inhibit($0, because: reason, mode: "block")
    }
    var lock: BusDescriptor?
    var denial: BusError?
    return BusRequest(.logind, query: calls[0]) { event in
      switch event {
      case .reply(let values, let call):
        guard case .descriptor(let granted)? = values.only else { return .malformed }
        lock = granted
        if call == calls[0] { denial = nil }
        inbox.put(.awake(request: request, lack: denial.map { "shutdown: \($0)" }))
      // A lock is not given back for a lesser one, as when polkit is away for a moment.
      case .failure(let error, of: calls[0]) where error.kind == .accessDenied && lock == nil:
        denial = error
        return .call(calls[1])
      // A lock outlives the bus.
      case .failure(let error, let call):
        if lock != nil { return .done }
        inbox.put(.awake(request: request, lack: "sleep: \(error)"))
        if call != nil, error.kind == .other { return .again }
      case .signal: break
      }
      return .done
    }
  }

  /// A unit without which the daemon is in the background. Until its state is known, the unit does not pause the daemon,
  /// so that the launch does not wait. An unknown unit is reported as a problem, unless it was there before, as a
  /// transient unit, or is of a type that needs no file: then it counts as inactive.
  static func unit(_ name: String, _ inbox: BusInbox) -> BusRequest {
    let (own, path, name) = (name, units + label(ofUnit: name), VisibleText.line(name))
    // systemd reports changes under the unit's own name alone, never under an alias.
    var followed = own
    var last = ""
    var (isSubscribed, isRead) = (false, false)
    let needsFile = ![".mount", ".swap", ".device", ".scope"].contains { own.hasSuffix($0) }
    func become(_ state: String) {
      inbox.setProblem(nil, of: name)
      if state == last { return }
      last = state
      // A unit that is "reloading" or "refreshing" works.
      let isUp = ["active", "reloading", "refreshing"].contains(state)
      let reason = BackgroundReason(name)
      inbox.put(
        isUp ? .resume(for: reason) : .pause(for: reason),
        "\(name) is \(VisibleText.excerpt(state))")
    }
    let read = BusCall.getAll(of: path, "Unit", systemd)
    // Reading an unloaded unit loads it for a moment, which sends `UnitNew` again, without end. `GetUnit` loads none.
    let find = BusCall("GetUnit", of: systemd.path, manager, systemd, [own])
    // A unit that is loaded again, such as a mount without a file, sends no changes at first.
    let new = BusMatch("UnitNew", of: systemd.path, manager, systemd, argument: own)
    return BusRequest(
      systemd, matches: [.changes(of: path, "Unit", systemd), new], query: subscribe
    ) { event in
      switch event {
      case .reply(_, to: subscribe):
        isSubscribed = true
        return .call(isRead ? find : read)
      case .reply(_, to: find): return .call(read)
      case .reply(let values, _):
        let properties = values.only?.properties ?? [:]
        guard case .string(let load)? = properties["LoadState"],
          case .string(let state)? = properties["ActiveState"]
        else { return .malformed }
        if isSubscribed { inbox.settle(name) }
        if case .string(let id)? = properties["Id"], id != followed {
          followed = id
          return .follow(.changes(of: units + label(ofUnit: id), "Unit", systemd))
        }
        isRead = true
        if load == "not-found", last.isEmpty, needsFile {
          inbox.setProblem("there is no unit \(name)", of: name)
        } else {
          become(state)
        }
      case .failure(let error, of: subscribe):
        isSubscribed = error.name.hasSuffix(".AlreadySubscribed")
        if !isSubscribed { inbox.warn(error, without: name) }
        return .call(isRead ? find : read)
      case .failure(let error, of: find) where error.name.hasSuffix(".NoSuchUnit"):
        if !last.isEmpty { become("inactive") }
      case .failure(let error, let call):
        // On the next connection the unit is neither followed nor read.
        if call == nil, error.kind == .unavailable { (followed, isRead) = (own, false) }
        if call != nil, error.kind == .unknownObject {
          inbox.setProblem("there is no unit \(name)", of: name)
        } else {
          if error.kind == .unavailable { inbox.setProblem("no bus for \(name)", of: name) }
          inbox.warn(error, without: name)
          // The unit may have changed, and may not change again.
          if call != nil, error.kind == .other { return .again }
        }
      // The state is read again: a change and its reversal count as none.
      case .signal: return .again
      }
      return .done
    }
  }
}

/// The last element of the path of a unit's object: letters and digits are kept; anything else, and a digit at the
/// beginning, becomes `_` and two hexadecimal digits.
func label(ofUnit name: String) -> String {
  var label: [UInt8] = []
  for byte in name.utf8 {
    if byte.isLetter || byte.isDigit && !label.isEmpty {
      label.append(byte)
    } else {
      label += "_\(String(byte >> 4, radix: 16))\(String(byte & 15, radix: 16))".utf8
    }
  }
  return name.isEmpty ? "_" : String(decoding: label, as: UTF8.self)
}

/// Converts a time span of systemd's; the longest means infinity.
func duration(microseconds: UInt64) -> Duration {
  if microseconds == .max { return .seconds(Int64.max) }
  return .seconds(Int64(microseconds / 1_000_000)) + .microseconds(Int64(microseconds % 1_000_000))
}
