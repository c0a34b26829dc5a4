public import DaemonLifecycle

/// `origin`, and what belongs to it.
///
///     {"coalesced":1,"origin":"signal","pid":1,"signal":"SIGTERM","uid":0}
///     {"claimedPID":1,"claimedUID":0,"coalesced":1,"origin":"signal","signal":"SIGTERM"}
///     {"fact":"the machine is about to sleep","origin":"bus"}
///     {"origin":"pressure","resource":"memory"}
///     {"error":{"text":"no route","type":"SocketError"},"origin":"bodyFailed"}
///     {"origin":"other","text":"notification CacheInvalidated"}
///     {"origin":"launch"}
///
/// The others are `api`, `watchdog`, `bodyReturned`, `callerCancelled`, `launchFailed` and `lateObserver`, with
/// nothing.
///
/// `pid` and `uid` of a signal are the kernel's word, 0 and 0 for the kernel itself. A signal that was queued has what
/// its sender claims, under other keys, if anything.
///
/// Decoding throws a `DecodingError` for a key or a word that this version does not know. Errors become a
/// ``RecordedError``.
extension LifecycleCause: Codable {
  private enum Key: String, CodingKey {
    case origin, signal, pid, uid, claimedPID, claimedUID, coalesced, fact, resource, error, text
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
      case .signal: [.origin, .signal, .pid, .uid, .claimedPID, .claimedUID, .coalesced]
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
    case .signal(let signal, let sender, let coalesced):
      try container.encode(signal, forKey: .signal)
      try Self.encode(sender, to: &container)
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
    }
  }

  private static func sender(in container: KeyedDecodingContainer<Key>) throws -> Sender {
    guard container.contains(.pid) || container.contains(.uid) else {
      return .queued(
        claimedPID: try container.decodeIfPresent(Int32.self, forKey: .claimedPID),
        claimedUID: try container.decodeIfPresent(UInt32.self, forKey: .claimedUID))
    }
    let pid = try container.decode(Int32.self, forKey: .pid)
    let uid = try container.decode(UInt32.self, forKey: .uid)
    return pid == 0 && uid == 0 ? .kernel : .process(pid: pid, uid: uid)
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
        from: try Self.sender(in: container),
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
