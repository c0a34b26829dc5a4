public import DaemonLifecycle

/// `origin`, and what belongs to it.
///
///     {"coalesced":1,"origin":"signal","pid":1,"signal":"SIGTERM","uid":0}
///     {"fact":"the machine is about to sleep","origin":"bus"}
///     {"origin":"pressure","resource":"memory"}
///     {"error":{"text":"no route","type":"SocketError"},"origin":"bodyFailed"}
///     {"origin":"other","text":"notification CacheInvalidated"}
///     {"origin":"launch"}
///
/// The others are `api`, `watchdog`, `bodyReturned`, `callerCancelled`, `launchFailed` and `lateObserver`, with
/// nothing.
///
/// Decoding throws a `DecodingError` for a key or a word that this version does not know. Errors become a
/// ``RecordedError``.
extension LifecycleCause: Codable {
  private enum Key: String, CodingKey {
    case origin, signal, pid, uid, coalesced, fact, resource, error, text
  }

  /// Which of the origins; the rest is under other keys.
  private enum Kind: String, Word {
    case signal, launch, api, bus, pressure, watchdog, bodyReturned, bodyFailed, callerCancelled
    case launchFailed, lateObserver, other

    static var kind: String { "origin" }
    var word: String { rawValue }
    init?(word: String) { self.init(rawValue: word) }

    var keys: [Key] {
      switch self {
      case .signal: [.origin, .signal, .pid, .uid, .coalesced]
      case .bus: [.origin, .fact]
      case .pressure: [.origin, .resource]
      case .bodyFailed: [.origin, .error]
      case .other: [.origin, .text]
      case .launch, .api, .watchdog, .bodyReturned, .callerCancelled, .launchFailed, .lateObserver:
        [.origin]
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(kind.word, forKey: .origin)
    switch origin {
    case .signal(let signal, let pid, let uid, let coalesced):
      try container.encode(signal, forKey: .signal)
      try container.encode(pid, forKey: .pid)
      try container.encode(uid, forKey: .uid)
      try container.encode(coalesced, forKey: .coalesced)
    case .bus(let fact): try container.encode(fact, forKey: .fact)
    case .pressure(let resource): try container.encode(resource, forKey: .resource)
    case .bodyFailed(let error):
      try container.encode(RecordedError(error, text: errorText), forKey: .error)
    case .other(let text): try container.encode(text, forKey: .text)
    case .launch, .api, .watchdog, .bodyReturned, .callerCancelled, .launchFailed, .lateObserver:
      break
    }
  }

  private var kind: Kind {
    switch origin {
    case .signal: .signal
    case .launch: .launch
    case .api: .api
    case .bus: .bus
    case .pressure: .pressure
    case .watchdog: .watchdog
    case .bodyReturned: .bodyReturned
    case .bodyFailed: .bodyFailed
    case .callerCancelled: .callerCancelled
    case .launchFailed: .launchFailed
    case .lateObserver: .lateObserver
    case .other: .other
    }
  }

  public init(from decoder: any Decoder) throws {
    let kind = try decoder.container(keyedBy: Key.self).word(Kind.self, forKey: .origin)
    let container = try decoder.container(keyedBy: Key.self, having: kind.keys)
    var errorText: String?
    let origin: Origin
    switch kind {
    case .signal:
      origin = .signal(
        try container.word(UnixSignal.self, forKey: .signal),
        pid: try container.decode(Int32.self, forKey: .pid),
        uid: try container.decode(UInt32.self, forKey: .uid),
        coalesced: try container.decode(Int.self, forKey: .coalesced))
    case .bus: origin = .bus(try container.decode(String.self, forKey: .fact))
    case .pressure:
      origin = .pressure(try container.word(DidReceivePressure.Resource.self, forKey: .resource))
    case .bodyFailed:
      let error = try container.decode(RecordedError.self, forKey: .error)
      errorText = error.text
      origin = .bodyFailed(error)
    case .other: origin = .other(try container.decode(String.self, forKey: .text))
    case .launch: origin = .launch
    case .api: origin = .api
    case .watchdog: origin = .watchdog
    case .bodyReturned: origin = .bodyReturned
    case .callerCancelled: origin = .callerCancelled
    case .launchFailed: origin = .launchFailed
    case .lateObserver: origin = .lateObserver
    }
    self.init(origin, errorText: errorText)
  }
}
