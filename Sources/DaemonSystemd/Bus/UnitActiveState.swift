/// What a unit is doing, by systemd's words.
package enum UnitActiveState: Sendable, Hashable, CustomStringConvertible {
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
  package init(_ word: String) { self = Self.words[word] ?? .other(word) }

  /// systemd's word.
  package var description: String {
    if case .other(let word) = self { return word }
    return Self.words.first { $0.value == self }?.key ?? ""
  }
}
