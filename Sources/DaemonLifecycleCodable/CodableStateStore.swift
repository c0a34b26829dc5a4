// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle
public import DaemonLifecycleState
public import FoundationEssentials
import Synchronization

extension LifecycleObservable {
  /// Adds an observer that saves a value on ShouldSaveState, and at an interval if one is given. Otherwise it works as
  /// the form for bytes in `DaemonLifecycleState`.
  ///
  /// ```swift
  /// let store = try CodableStateStore<Bookmark>(StateStore())
  /// lifecycle.addStateSaver(store, every: .seconds(60)) { await poller.bookmark }
  /// ```
  @discardableResult public func addStateSaver<Value>(
    _ store: CodableStateStore<Value>, every interval: Duration? = nil,
    phase: LifecyclePhase = .standard, value: @escaping @Sendable () async throws -> Value
  ) -> StateSaver {
    addStateSaver(store.store, every: interval, phase: phase) {
      try store.bytes(of: try await value())
    }
  }
}

/// A store that keeps a `Codable` value on disk, as `StateStore` keeps bytes.
///
/// ```swift
/// struct Bookmark: Codable { var page = 0 }
///
/// let store = try CodableStateStore<Bookmark>(StateStore())
/// var bookmark = try store.loadOrSetAside { log($0) } ?? Bookmark()
/// …
/// try store.save(bookmark)
/// ```
///
/// The default format is JSON with sorted keys. A state that can't be decoded is an error and is not overwritten: each
/// save throws that error until the file is repaired or set aside.
///
/// Safe to use from any thread. Calls block their thread, as those of the store do.
public final class CodableStateStore<Value: Codable & Sendable>: Sendable {
  /// The store that keeps the bytes, to set them aside or to close it.
  public let store: StateStore
  private let encode: @Sendable (Value) throws -> [UInt8]
  private let decode: @Sendable (UInt32, [UInt8]) throws -> Value
  /// Whether the state on disk was decoded, or was written by this store.
  private let isChecked = Atomic<Bool>(false)

  /// Makes a store of a value as JSON; to load older versions of the value, use ``init(_:encode:decode:)``.
  ///
  /// - Parameters:
  ///   - store: The store that keeps the bytes.
  ///   - encoder: The encoder of values. Default: one with sorted keys, so that equal values have equal bytes.
  ///   - decoder: The decoder of values.
  public convenience init(
    _ store: StateStore, encoder: JSONEncoder? = nil, decoder: JSONDecoder = JSONDecoder()
  ) {
    let sorting = JSONEncoder()
    sorting.outputFormatting = .sortedKeys
    let encoder = encoder ?? sorting
    self.init(
      store, encode: { try [UInt8](encoder.encode($0)) },
      decode: { _, bytes in try decoder.decode(Value.self, from: Data(bytes)) })
  }

  /// Makes a store of a value in a custom format, or in a format with older versions.
  ///
  /// ```swift
  /// try CodableStateStore<Bookmark>(StateStore(version: 2)) {
  ///   try encode($0)
  /// } decode: { version, bytes in
  ///   if version > 1 { return try decode(Bookmark.self, bytes) }
  ///   return Bookmark(try decode(OldBookmark.self, bytes))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - store: The store that keeps the bytes.
  ///   - encode: Returns the bytes for a value, in the store's version. ``saveIfChanged(_:)`` requires the same bytes
  ///     for equal values.
  ///   - decode: Returns the value for bytes and the version with which they were saved.
  public init(
    _ store: StateStore, encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable (_ version: UInt32, _ bytes: [UInt8]) throws -> Value
  ) {
    self.store = store
    self.encode = encode
    self.decode = decode
  }

  // MARK: Load

  /// Loads the newest value that is intact; returns `nil` when there is none.
  ///
  /// It may be the one before the last: ``loadOrSetAside(_:)`` reports that.
  ///
  /// - Throws: The errors of `StateStore.load()`, and `undecodable`.
  public func load() throws(StateError) -> Value? { try loadStored()?.value }

  /// Loads the last value together with the state that it was decoded from.
  private func loadStored() throws(StateError) -> (stored: StoredState, value: Value)? {
    isChecked.store(false, ordering: .releasing)
    guard let stored = try store.load() else {
      isChecked.store(true, ordering: .releasing)
      return nil
    }
    let value: Value
    do { value = try decode(stored.version, stored.bytes) } catch {
      throw .undecodable(path: stored.path, reason: Self.text(of: error))
    }
    isChecked.store(true, ordering: .releasing)
    return (stored, value)
  }

  /// Loads the last value as `StateStore.loadOrSetAside(_:)` does; a value that can't be decoded is set aside, too.
  ///
  /// - Throws: The errors of ``load()``.
  public func loadOrSetAside(_ warn: (String) -> Void) throws(StateError) -> Value? {
    try store.loadOrSetAside(warn) { () throws(StateError) in try loadStored() }
  }

  // MARK: Save

  /// Replaces the value, and returns when the new one is on disk.
  ///
  /// - Throws: The errors of `StateStore.save(_:)`; `unencodable`; and `undecodable` when the state on disk can't be
  ///   decoded.
  public func save(_ value: Value) throws(StateError) { try store.save(try bytes(of: value)) }

  /// Saves a value unless it is on disk already.
  ///
  /// - Returns: Whether it saved.
  /// - Throws: The errors of ``save(_:)``.
  @discardableResult
  public func saveIfChanged(_ value: Value) throws(StateError) -> Bool {
    try store.saveIfChanged(try bytes(of: value))
  }

  /// Returns the bytes that ``save(_:)`` would save.
  func bytes(of value: Value) throws(StateError) -> [UInt8] {
    if !isChecked.load(ordering: .acquiring) { _ = try loadStored() }
    do { return try encode(value) } catch { throw .unencodable(reason: Self.text(of: error)) }
  }

  /// The coding path and the problem, since Foundation's own text for these errors is long.
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
