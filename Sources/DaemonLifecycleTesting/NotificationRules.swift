// SPDX-License-Identifier: Apache-2.0
/// The rules by which systemd follows a service's messages. It records messages that systemd would ignore or misread.
/// That each field is well-formed is checked when it is sent. Pure: no I/O.
struct NotificationRules: Sendable {
  typealias Message = FakeServiceManager.Message

  /// One sentence for each violation, in the order of the messages.
  private(set) var violations: [String] = []
  var service = FakeServiceManager.ServiceState()
  /// The time of the last request to reload, in microseconds of `CLOCK_MONOTONIC`.
  var reloadRequestedAt: UInt64 = 0

  mutating func note(_ sentence: String, _ message: Message) {
    let text = message.description
    violations.append("\(sentence) [\(text.utf8.count > 200 ? "\(text.prefix(200))…" : text)]")
  }

  mutating func take(_ message: Message, now: UInt64) {
    let ready = message["READY"] == "1"
    let reloading = message["RELOADING"] == "1"
    let stopping = message["STOPPING"] == "1"
    if message["BARRIER"] != nil { service.barriers += 1 }
    if message["WATCHDOG"] == "1" || message["WATCHDOG_USEC"] != nil { service.watchdogPings += 1 }
    if let status = message["STATUS"] { service.statusText = status }
    if service.isStopping, ready || reloading || stopping {
      note("STOPPING=1 was final: no READY=1, RELOADING=1 or STOPPING=1 comes after it.", message)
      return
    }
    if stopping { service.isStopping = true }
    if reloading { beginReload(message, now: now) }
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
    guard let time = message["MONOTONIC_USEC"].flatMap({ UInt64($0) }) else {
      note("RELOADING=1 without MONOTONIC_USEC= is ignored: the reload would time out.", message)
      return
    }
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
}
