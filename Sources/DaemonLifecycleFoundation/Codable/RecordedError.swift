/// What is left of an error that was written down: its type's name, and what it said of itself.
///
///     {"text":"disk full","type":"StateError"}
///
/// In place of the error wherever a report, a cause or an exit is decoded.
public struct RecordedError: Error, Codable, Sendable, Hashable, CustomStringConvertible {
  /// The name of the error's type.
  public let type: String
  /// What the error said of itself.
  public let text: String

  /// An error made by hand, for tests.
  public init(type: String, text: String) {
    self.type = type
    self.text = text
  }

  /// Of an error, which may be a recorded one, and of what it said of itself where it was thrown.
  init(_ error: any Error, text: String? = nil) {
    let recorded = error as? RecordedError
    type = recorded?.type ?? "\(Swift.type(of: error))"
    self.text = text ?? "\(error)"
  }

  private enum Key: String, CodingKey, CaseIterable { case type, text }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self, having: Key.allCases)
    type = try container.decode(String.self, forKey: .type)
    text = try container.decode(String.self, forKey: .text)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(type, forKey: .type)
    try container.encode(text, forKey: .text)
  }

  public var description: String { text }
}
