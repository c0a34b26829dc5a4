// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle

/// Encodes a cause as its `origin` and the keys that belong to it.
///
/// ```json
/// {"coalesced":1,"origin":"signal","pid":1,"signal":"SIGTERM","uid":0}
/// {"claimedPID":1,"claimedUID":0,"coalesced":1,"origin":"signal","signal":"SIGTERM"}
/// {"coalesced":1,"origin":"signal","signal":"SIGTERM","via":"Dispatch"}
/// {"fact":"the machine is about to sleep","origin":"bus"}
/// {"error":{"text":"no route","type":"SocketError"},"origin":"bodyFailed"}
/// {"origin":"other","text":"notification CacheInvalidated"}
/// {"origin":"launch"}
/// ```
///
/// The other origins have no further keys: `api`, `watchdog`, `bodyReturned`, `callerCancelled`, `launchFailed` and
/// `lateObserver`.
///
/// `pid` and `uid` of a signal are reported by the kernel; both are 0 for the kernel itself. A signal that was queued
/// has instead what its sender claims, if anything, under other keys.
extension LifecycleCause: Encodable {
  private enum Key: String, CodingKey {
    case origin, signal, pid, uid, claimedPID, claimedUID, via, coalesced, fact, error,
      text
  }

  /// Encodes the origin and its values.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    let word: String
    switch origin {
    case .signal(let signal, let sender, let coalesced):
      word = "signal"
      try container.encode(signal, forKey: .signal)
      try Self.encode(sender, to: &container)
      try container.encode(coalesced, forKey: .coalesced)
    case .bus(let fact):
      word = "bus"
      try container.encode(fact, forKey: .fact)
    case .pressure: word = "pressure"
    case .bodyFailed(let error):
      word = "bodyFailed"
      try container.encode(RecordedError(error, text: errorText), forKey: .error)
    case .other(let text):
      word = "other"
      try container.encode(text, forKey: .text)
    case .launch, .api, .watchdog, .bodyReturned, .callerCancelled, .launchFailed, .lateObserver:
      word = "\(origin)"
    }
    try container.encode(word, forKey: .origin)
  }

  private static func encode(
    _ sender: Sender, to container: inout KeyedEncodingContainer<Key>
  ) throws {
    switch sender {
    case .kernel: try encode(.process(pid: 0, uid: 0), to: &container)
    case .process(let pid, let uid):
      try container.encode(pid, forKey: .pid)
      try container.encode(uid, forKey: .uid)
    case .queued(let pid, let uid):
      try container.encodeIfPresent(pid, forKey: .claimedPID)
      try container.encodeIfPresent(uid, forKey: .claimedUID)
    case .dispatch: try container.encode("Dispatch", forKey: .via)
    }
  }
}

/// The encoded form of an error: the name of its type, and its text, rendered where it was thrown.
struct RecordedError: Encodable {
  let type: String
  let text: String

  init(_ error: any Error, text: String? = nil) {
    type = "\(Swift.type(of: error))"
    self.text = text ?? "\(error)"
  }
}

// MARK: Single words

/// Encodes a state as its name: `"foreground"`.
extension LifecycleState: Encodable {
  /// Encodes the name of the state.
  public func encode(to encoder: any Encoder) throws {
    try "\(self)".encode(to: encoder)
  }
}

/// Encodes a reason as its name: `"operator"`.
extension BackgroundReason: Encodable {
  /// Encodes the name of the reason.
  public func encode(to encoder: any Encoder) throws { try name.encode(to: encoder) }
}

/// Encodes a signal as its name, which is the same on every machine, unlike its number: `"SIGTERM"`, `"SIGRTMIN+3"`.
extension UnixSignal: Encodable {
  /// Encodes the name of the signal.
  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}
