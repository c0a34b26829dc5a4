/// What a unit is doing, by systemd's words.
public enum UnitActiveState: Sendable, Hashable, CustomStringConvertible {
  /// It runs, or has done its work.
  case active
  /// It runs, and reads its configuration again.
  case reloading
  /// It does not run.
  case inactive
  /// It does not run, and the last run has ended badly.
  case failed
  /// It is being started.
  case activating
  /// It is being stopped.
  case deactivating
  /// It does not run while it is being cleaned up.
  case maintenance
  /// It runs, and what it was given, such as credentials, is made anew.
  case refreshing
  /// One that was added to systemd later.
  case other(String)

  private static let words: [String: UnitActiveState] = [
    "active": .active, "reloading": .reloading, "inactive": .inactive, "failed": .failed,
    "activating": .activating, "deactivating": .deactivating, "maintenance": .maintenance,
    "refreshing": .refreshing,
  ]

  /// The state with this word; never fails, since systemd may learn new ones.
  public init(_ word: String) { self = Self.words[word] ?? .other(word) }

  /// systemd's word.
  public var description: String {
    if case .other(let word) = self { return word }
    return Self.words.first { $0.value == self }?.key ?? ""
  }
}

/// What systemd is about to do with a unit, by its words for the types of jobs.
public enum UnitJob: Sendable, Hashable {
  /// It is started.
  case start
  /// It is stopped, and stays so.
  case stop
  /// It is stopped and started again.
  case restart
  /// It reads its configuration again.
  case reload
  /// It is stopped and started again if it runs.
  case tryRestart
  /// Another type, such as `verify-active`.
  case other(String)

  init(_ word: String) {
    self =
      switch word {
      case "start": .start
      case "stop": .stop
      case "restart": .restart
      case "reload": .reload
      case "try-restart": .tryRestart
      default: .other(word)
      }
  }

  /// Whether the unit is started again after it has stopped.
  public var isRestart: Bool { self == .restart || self == .tryRestart }
}
