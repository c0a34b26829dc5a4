import Foundation

/// What one run tells the next of its connections: the sockets travel beside it, each under its name.
struct Handover: Codable, Equatable, Sendable {
  /// The number that the next connection gets. Numbers are never used again, so that a name in systemd's store means
  /// one connection and no other.
  var nextID: Int
  /// Of those connections that have something half said; the others have nothing to tell.
  var conversations: [Int: Conversation]
}

extension Conversation: Codable {
  private enum Key: String, CodingKey { case input, output, isOver }

  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    self.init(
      input: [UInt8](try values.decode(Data.self, forKey: .input)),
      output: [UInt8](try values.decode(Data.self, forKey: .output)),
      isOver: try values.decode(Bool.self, forKey: .isOver))
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(Data(input), forKey: .input)
    try values.encode(Data(output), forKey: .output)
    try values.encode(isOver, forKey: .isOver)
  }
}

/// The names in systemd's store.
enum StoredName {
  static let state = "state"
  /// What a socket unit passes.
  static let listener = "listener"
  /// What we have bound ourselves: another name, since a socket unit's socket must not be stored.
  static let ownListener = "own-listener"

  static func connection(_ id: Int) -> String { "c\(id)" }

  /// The connection's number; `nil` for what is none of ours.
  static func id(_ name: String) -> Int? {
    guard name.hasPrefix("c"), let id = Int(name.dropFirst()), id > 0 else { return nil }
    return connection(id) == name ? id : nil
  }
}
