extension Decoder {
  /// The container, when it has no other keys than these: what a newer version has added could change what the rest
  /// means.
  func container<Key: CodingKey>(
    keyedBy type: Key.Type, having keys: [Key]
  ) throws -> KeyedDecodingContainer<Key> {
    let known = Set(keys.map(\.stringValue))
    for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: codingPath + [key],
          debugDescription: "\"\(key.stringValue)\" is no key that this version knows here."))
    }
    return try container(keyedBy: type)
  }
}

/// A key that may be unknown.
struct AnyKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }
  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

/// A value that is one word in JSON.
protocol Word: Sendable {
  var word: String { get }
  /// What it is, for an error: `outcome`.
  static var kind: String { get }
  init?(word: String)
}

extension KeyedDecodingContainer {
  /// The value that a word stands for.
  func word<Value: Word>(_ type: Value.Type, forKey key: Key) throws -> Value {
    let word = try decode(String.self, forKey: key)
    if let value = Value(word: word) { return value }
    throw DecodingError.dataCorruptedError(
      forKey: key, in: self,
      debugDescription: "\"\(word)\" is no \(Value.kind) that this version knows.")
  }
}

extension Word {
  func encodeWord(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(word)
  }

  init(wordFrom decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let word = try container.decode(String.self)
    guard let value = Self(word: word) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "\"\(word)\" is no \(Self.kind) that this version knows.")
    }
    self = value
  }
}
