public import DaemonLifecycle

// What is one word in JSON.

/// As its name: `"foreground"`.
extension LifecycleState: Codable, Word {
  static var kind: String { "state" }

  var word: String {
    switch self {
    case .launching: "launching"
    case .background: "background"
    case .foreground: "foreground"
    case .terminated: "terminated"
    }
  }

  init?(word: String) {
    guard let value = Self.allCases.first(where: { $0.word == word }) else { return nil }
    self = value
  }

  public func encode(to encoder: any Encoder) throws { try encodeWord(to: encoder) }
  public init(from decoder: any Decoder) throws { try self.init(wordFrom: decoder) }
}

/// As its name: `"operator"`.
extension BackgroundReason: Codable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }

  public init(from decoder: any Decoder) throws {
    self.init(try decoder.singleValueContainer().decode(String.self))
  }
}

/// As its name, which means the same on every machine, where its number does not: `"SIGTERM"`, `"SIGRTMIN+3"`.
extension UnixSignal: Codable, Word {
  static var kind: String { "signal" }
  var word: String { description }
  init?(word: String) { self.init(word) }

  public func encode(to encoder: any Encoder) throws { try encodeWord(to: encoder) }
  public init(from decoder: any Decoder) throws { try self.init(wordFrom: decoder) }
}

/// As its name: `"memory"`.
extension DidReceivePressure.Resource: Codable, Word {
  static var kind: String { "resource" }
  var word: String { rawValue }
  init?(word: String) { self.init(rawValue: word) }

  public func encode(to encoder: any Encoder) throws { try encodeWord(to: encoder) }
  public init(from decoder: any Decoder) throws { try self.init(wordFrom: decoder) }
}

/// As its name: `"waitingForExecutor"`.
extension LifecycleReport.Outcome.Progress: Codable, Word {
  static var kind: String { "progress" }
  private static let all: [Self] = [.waitingForExecutor, .running, .unknown]

  var word: String {
    switch self {
    case .waitingForExecutor: "waitingForExecutor"
    case .running: "running"
    case .unknown: "unknown"
    }
  }

  init?(word: String) {
    guard let value = Self.all.first(where: { $0.word == word }) else { return nil }
    self = value
  }

  public func encode(to encoder: any Encoder) throws { try encodeWord(to: encoder) }
  public init(from decoder: any Decoder) throws { try self.init(wordFrom: decoder) }
}

/// As its name: `"outOfTime"`.
extension LifecycleReport.Outcome.Reason: Codable, Word {
  static var kind: String { "reason" }
  private static let all: [Self] = [.gone, .busy, .outOfTime, .noThread, .overtaken]

  var word: String {
    switch self {
    case .gone: "gone"
    case .busy: "busy"
    case .outOfTime: "outOfTime"
    case .noThread: "noThread"
    case .overtaken: "overtaken"
    }
  }

  init?(word: String) {
    guard let value = Self.all.first(where: { $0.word == word }) else { return nil }
    self = value
  }

  public func encode(to encoder: any Encoder) throws { try encodeWord(to: encoder) }
  public init(from decoder: any Decoder) throws { try self.init(wordFrom: decoder) }
}
