// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycleState
public import FoundationEssentials
import Synchronization

/// Keeps a value on disk as `StateStore` keeps bytes: the old one or the new one, whatever happens.
///
/// ```swift
/// struct Bookmark: Codable { var page = 0 }
///
/// let store = try CodableStateStore<Bookmark>(StateStore())
/// var bookmark = try store.load() ?? Bookmark()
/// …
/// try store.save(bookmark)
/// ```
///
/// As JSON with sorted keys, unless said otherwise. What is loaded and does not decode is an error, and is not
/// overwritten: every save throws it, until the file was mended or set aside.
///
/// Safe to use from any thread; calls block it, as those of the store do.
public final class CodableStateStore<Value: Codable & Sendable>: Sendable {
  /// Where the bytes are.
  public let store: StateStore
  private let encode: @Sendable (Value) throws -> [UInt8]
  private let decode: @Sendable (UInt32, [UInt8]) throws -> Value
  /// What is on disk was decoded, or was written by us.
  private let isChecked = Atomic<Bool>(false)

  /// A value as JSON.
  ///
  /// For an older version of the value give the store a migration of bytes; to decode each version with a type of its
  /// own, use the other initializer.
  public convenience init(
    _ store: StateStore, encoder: JSONEncoder = .state, decoder: JSONDecoder = JSONDecoder()
  ) {
    self.init(
      store, encode: { try [UInt8](encoder.encode($0)) },
      decode: { _, bytes in try decoder.decode(Value.self, from: Data(bytes)) })
  }

  /// A value in any form.
  ///
  /// ```swift
  /// try CodableStateStore<Bookmark>(StateStore(version: 2, migrate: { _, bytes in bytes })) {
  ///   try encode($0)
  /// } decode: { version, bytes in
  ///   version == 1 ? Bookmark(try decode(OldBookmark.self, bytes)) : try decode(Bookmark.self, bytes)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - store: Where the bytes are kept.
  ///   - encode: The bytes for a value, in the store's version. For ``saveIfChanged(_:)`` the same for the same value.
  ///   - decode: The value for bytes, given the version with which they were saved.
  public init(
    _ store: StateStore, encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable (_ version: UInt32, _ bytes: [UInt8]) throws -> Value
  ) {
    self.store = store
    self.encode = encode
    self.decode = decode
  }

  // MARK: Load

  /// The last value that was saved; `nil` when none ever was.
  ///
  /// - Throws: As `StateStore.load()`, and `undecodable`.
  public func load() throws(StateError) -> Value? { try loadStored()?.value }

  /// As ``load()``, with what the store says about it: look at `broken`.
  public func loadStored() throws(StateError) -> (value: Value, stored: StoredState)? {
    isChecked.store(false, ordering: .releasing)
    guard let stored = try store.load() else {
      isChecked.store(true, ordering: .releasing)
      return nil
    }
    let value: Value
    do { value = try decode(stored.version, stored.bytes) } catch {
      throw .undecodable(stored.path, reason: Self.text(of: error))
    }
    isChecked.store(true, ordering: .releasing)
    return (value, stored)
  }

  /// The last value; if it can't be read, or is not one, its files are renamed, `warn` gets a sentence, and there
  /// is none.
  ///
  /// Only for what another attempt would not mend: that the state is in use, too new, somebody else's, or not to be
  /// read for now, is thrown and stays as it is.
  public func loadOrSetAside(_ warn: (String) -> Void) throws(StateError) -> Value? {
    do throws(StateError) {
      guard let (value, stored) = try loadStored() else { return nil }
      for file in stored.broken { warn("\(file). The state before it is used.") }
      return value
    } catch {
      switch error {
      case .allBroken, .undecodable, .notMigrated, .notAFile: break
      default: throw error
      }
      let paths = try setAside()
      warn("\(error) It is kept as \(paths.joined(separator: ", ")).")
      return nil
    }
  }

  /// As `StateStore.setAside()`.
  public func setAside() throws(StateError) -> [String] {
    defer { isChecked.store(false, ordering: .releasing) }
    return try store.setAside()
  }

  /// As `StateStore.close()`.
  public func close() { store.close() }

  // MARK: Save

  /// Replaces the value, and returns when the new one is on disk.
  ///
  /// - Throws: As `StateStore.save(_:)`; `unencodable`; and `undecodable` when what is there is not a value.
  public func save(_ value: Value) throws(StateError) { try store.save(try bytes(of: value)) }

  /// Saves a value that is not on disk already; whether it did.
  @discardableResult
  public func saveIfChanged(_ value: Value) throws(StateError) -> Bool {
    try store.saveIfChanged(try bytes(of: value))
  }

  /// What would be saved, for `SavedState`.
  ///
  /// - Throws: `unencodable`, and `undecodable` when what is there is not a value.
  public func bytes(of value: Value) throws(StateError) -> [UInt8] {
    if !isChecked.load(ordering: .acquiring) { _ = try loadStored() }
    do { return try encode(value) } catch { throw .unencodable(reason: Self.text(of: error)) }
  }

  /// Where in the value, and what: what Foundation prints of these errors is long.
  private static func text(of error: any Error) -> String {
    let path: [any CodingKey]
    let what: String
    switch error {
    case DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context),
      DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
      (path, what) = (context.codingPath, context.debugDescription)
    case EncodingError.invalidValue(_, let context):
      (path, what) = (context.codingPath, context.debugDescription)
    default: return "\(error)"
    }
    let place = path.map { $0.stringValue }.joined(separator: ".")
    return place.isEmpty ? what : "\(place): \(what)"
  }
}

extension JSONEncoder {
  /// JSON whose bytes are the same for the same value: with sorted keys.
  public static var state: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return encoder
  }
}
