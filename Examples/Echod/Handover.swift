// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// What one run passes to the next about its connections. The sockets are passed separately, each under its name.
struct Handover: Codable, Equatable, Sendable {
  /// The number that the next connection gets. Numbers are never used again, so that a name in systemd's store means
  /// one connection and no other.
  var nextID: Int
  /// The conversations with half a line or unsent answers.
  var conversations: [Int: Conversation]
}

extension Conversation: Codable {
  /// Bytes in base 64: as an array they would be a list of numbers.
  private struct Coded: Codable {
    let input, output: Data
    let isOver: Bool
  }

  init(from decoder: any Decoder) throws {
    let coded = try Coded(from: decoder)
    self.init(input: [UInt8](coded.input), output: [UInt8](coded.output), isOver: coded.isOver)
  }

  func encode(to encoder: any Encoder) throws {
    try Coded(input: Data(input), output: Data(output), isOver: isOver).encode(to: encoder)
  }
}

/// The names in systemd's store.
enum StoredName {
  static let state = "state"
  /// What a socket unit passes.
  static let listener = "listener"
  /// A socket that we have bound: another name, since a socket unit's socket must not be stored.
  static let ownListener = "own-listener"

  static func connection(_ id: Int) -> String { "c\(id)" }

  /// The connection's number; `nil` for other names.
  static func id(_ name: String) -> Int? {
    guard name.hasPrefix("c"), let id = Int(name.dropFirst()), id > 0 else { return nil }
    return connection(id) == name ? id : nil
  }
}
