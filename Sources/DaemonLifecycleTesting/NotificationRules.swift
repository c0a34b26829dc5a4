// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The rules by which systemd reads messages. It records what systemd would ignore, refuse or misread. Pure: no I/O.
package struct NotificationRules: Sendable {
  package typealias Message = FakeServiceManager.Message

  /// One sentence for each violation, in the order of the messages.
  package private(set) var violations: [String] = []
  package private(set) var service = FakeServiceManager.ServiceState()
  /// The time of the last request to reload, in microseconds of `CLOCK_MONOTONIC`.
  package var reloadRequestedAt: UInt64 = 0

  package init() {}

  /// Begins a new run: further messages are from another process.
  mutating func beginRun() { service = FakeServiceManager.ServiceState() }

  package enum Action: Sendable, Hashable {
    /// Close the descriptors, as always without `FDSTORE=1`.
    case close
    /// Close the descriptor, which answers the barrier, and count it.
    case closeAndCountBarrier
    case store(name: String, polled: Bool)
  }

  /// Takes a message in. Returns what to do with its descriptors, and the name of stored ones to remove.
  package mutating func take(_ message: Message, now: UInt64) -> (action: Action, removes: String?)
  {
    guard isReadable(message) else { return (.close, nil) }
    checkFields(message)
    if message.value(of: "BARRIER") != nil { return (takeBarrier(message), nil) }
    takeStates(message, now: now)
    return takeDescriptors(message)
  }

  mutating func note(_ sentence: String, _ message: Message) {
    let text = message.description
    violations.append("\(sentence) [\(text.utf8.count > 200 ? "\(text.prefix(200))…" : text)]")
  }

  // MARK: The message as a whole

  private mutating func isReadable(_ message: Message) -> Bool {
    if message.fullSize > NotifyMessage.maximumSize || message.isTruncated {
      note(
        "A message of \(message.fullSize) bytes is dropped: the manager reads \(NotifyMessage.maximumSize).",
        message)
    } else if message.bytes.isEmpty {
      note("An empty message is dropped.", message)
    } else if message.bytes.dropLast().contains(0) {
      note("A message with a NUL byte in it is dropped.", message)
    } else if message.senderPID <= 0 {
      note("A message without a sender is dropped.", message)
    } else {
      return true
    }
    return false
  }

  private mutating func checkFields(_ message: Message) {
    var seen: Set<String> = []
    for line in message.byteLines {
      guard let (nameBytes, value) = Message.split(line) else {
        note("\"\(String(decoding: line, as: UTF8.self))\" is not a field: it has no '='.", message)
        continue
      }
      let name = String(decoding: nameBytes, as: UTF8.self)
      if !seen.insert(name).inserted {
        note("\(name)= is there twice, of which one is read.", message)
      }
      if let requirement = NotifyRequirement(ofField: name) {
        if let objection = requirement.objection(to: value) {
          note(
            "\(name)=\(String(decoding: value, as: UTF8.self)) is ignored: \(objection).", message)
        }
      } else if !name.hasPrefix("X_") {
        note("\(name)= is unknown; a private field begins with X_.", message)
      }
    }
  }

  // MARK: States

  private mutating func takeStates(_ message: Message, now: UInt64) {
    let ready = message["READY"] == "1"
    let reloading = message["RELOADING"] == "1"
    let stopping = message["STOPPING"] == "1"
    if message["WATCHDOG"] == "1" || message["WATCHDOG_USEC"] != nil { service.watchdogPings += 1 }
    if let status = message["STATUS"] { service.status = status }
    if service.isStopping, ready || reloading || stopping {
      note("STOPPING=1 was final: no READY=1, RELOADING=1 or STOPPING=1 comes after it.", message)
      return
    }
    if stopping {
      if ready || reloading {
        note("STOPPING=1 overrides READY=1 and RELOADING=1 of its message.", message)
      }
      service.isStopping = true
      return
    }
    if reloading { beginReload(message, now: now) }
    if !reloading, message["MONOTONIC_USEC"] != nil {
      note("MONOTONIC_USEC= is ignored without RELOADING=1.", message)
    }
    if ready {
      if service.isReloading { service.reloadsEnded += 1 }
      service.isReloading = false
      service.isReady = true
    }
  }

  private mutating func beginReload(_ message: Message, now: UInt64) {
    if !service.isReady {
      note("RELOADING=1 came before the first READY=1: the start would count as done.", message)
    }
    guard let stamp = message.value(of: "MONOTONIC_USEC") else {
      note("RELOADING=1 without MONOTONIC_USEC= is ignored: the reload would time out.", message)
      return
    }
    guard let time = decimal(stamp, as: UInt64.self) else { return }  // noted with its field
    if time > now {
      note(
        "MONOTONIC_USEC= lies in the future: it is not of CLOCK_MONOTONIC in microseconds.", message
      )
    }
    if time < reloadRequestedAt {
      note(
        "MONOTONIC_USEC= is older than the request to reload, so RELOADING=1 is ignored.", message)
      return
    }
    service.isReloading = true
    service.reloadsBegun += 1
  }

  // MARK: Descriptors

  private mutating func takeBarrier(_ message: Message) -> Action {
    guard message.byteLines.count == 1, message.descriptorCount == 1, message["BARRIER"] == "1"
    else {
      note("BARRIER=1 must be alone in its message, with exactly one descriptor.", message)
      return .close
    }
    service.barriers += 1
    return .closeAndCountBarrier
  }

  private mutating func takeDescriptors(_ message: Message) -> (action: Action, removes: String?) {
    let stores = message["FDSTORE"] == "1"
    let removes = message["FDSTOREREMOVE"] == "1"
    let name = message.value(of: "FDNAME")
    if removes, name == nil { note("FDSTOREREMOVE=1 is ignored without FDNAME=.", message) }
    if name != nil, !stores, !removes {
      note("FDNAME= is ignored without FDSTORE=1 or FDSTOREREMOVE=1.", message)
    }
    if message["FDPOLL"] != nil, !stores { note("FDPOLL= is ignored without FDSTORE=1.", message) }
    if stores, message.descriptorCount == 0 {
      note("FDSTORE=1 came without a descriptor.", message)
    }
    if message.descriptorCount > 0, !stores, message["MAINPIDFD"] == nil {
      note("Descriptors came without FDSTORE=1 or MAINPIDFD=1 and are closed.", message)
    }
    let valid = name.flatMap {
      DescriptorName.isValid($0) ? String(decoding: $0, as: UTF8.self) : nil
    }
    // In pid 1 a removal in the same message comes first.
    let removed = removes ? valid : nil
    guard stores else { return (.close, removed) }
    return (.store(name: valid ?? "stored", polled: message["FDPOLL"] != "0"), removed)
  }
}
