// SPDX-License-Identifier: Apache-2.0
/// The registered observers and closures, by id and by object. All operations take constant time.
struct ObserverTable: Sendable {
  /// By the slot of their id; `nil`: free.
  private var slots: [ObserverEntry?] = []
  private var free: [Int] = []
  /// Observers by address. One that is gone may have had the same address as another that is there, which is
  /// then the one named here; the other stays in its slot, to be reported.
  private var observers = SmallDictionary<ObjectIdentifier, ObserverID>()
  /// Of the observers that are named after their type: how many of it there are, and the number of the last one. Those
  /// that are held weakly, which come and go, have no number.
  private var ofType = SmallDictionary<ObjectIdentifier, (count: Int, last: Int)>()
  /// The slot that is checked next for a deallocated observer.
  private var cursor = 0
  /// Closures by the address of their owner.
  private var closures: [ObjectIdentifier: Set<ObserverID>] = [:]

  subscript(id: ObserverID) -> ObserverEntry? {
    guard slots.indices.contains(id.slot), let entry = slots[id.slot], entry.id == id else {
      return nil
    }
    return entry
  }

  var isEmpty: Bool { count == 0 }
  var count: Int { slots.count - free.count }

  /// An id for the next entry, which is to be inserted at once.
  func nextID(_ value: UInt64) -> ObserverID {
    ObserverID(value: value, slot: free.last ?? slots.endIndex)
  }

  /// Returns the number of the next observer of a type.
  func nextNumber(of type: any Any.Type) -> Int { (ofType[ObjectIdentifier(type)]?.last ?? 0) + 1 }

  mutating func insert(_ entry: ObserverEntry) {
    if let (type, number) = entry.numberedType {
      ofType[type] = ((ofType[type]?.count ?? 0) + 1, number)
    }
    if entry.id.slot == free.last { free.removeLast() }
    if entry.id.slot == slots.endIndex { slots.append(nil) }
    slots[entry.id.slot] = entry
    guard let ownerID = entry.ownerID else { return }
    if entry.isObserver {
      observers[ownerID] = entry.id
    } else {
      closures[ownerID, default: []].insert(entry.id)
    }
  }

  mutating func remove(_ id: ObserverID) -> ObserverEntry? {
    guard let entry = self[id] else { return nil }
    slots[id.slot] = nil
    free.append(id.slot)
    if let (type, _) = entry.numberedType { forget(type) }
    guard let ownerID = entry.ownerID else { return entry }
    if entry.isObserver {
      if observers[ownerID] == id { observers[ownerID] = nil }
    } else {
      closures[ownerID]?.remove(id)
      if closures[ownerID]?.isEmpty == true { closures[ownerID] = nil }
    }
    return entry
  }

  private mutating func forget(_ type: ObjectIdentifier) {
    guard let (count, last) = ofType[type] else { return }
    ofType[type] = count > 1 ? (count - 1, last) : nil
  }

  /// Returns two entries to check: each addition checks two, so deallocated observers are never more than half.
  mutating func candidates() -> (ObserverEntry?, ObserverEntry?) { (next(), next()) }

  private mutating func next() -> ObserverEntry? {
    guard !slots.isEmpty else { return nil }
    cursor = cursor + 1 < slots.count ? cursor + 1 : 0
    return slots[cursor]
  }

  /// Removes all entries, and returns them.
  mutating func removeAll() -> [ObserverEntry] {
    defer { self = ObserverTable() }
    return slots.compactMap { $0 }
  }

  /// Whether this very object, which the caller holds, is an observer.
  func hasObserver(_ owner: ObjectIdentifier) -> Bool {
    observers[owner].flatMap { self[$0] }?.target != nil
  }

  /// Returns what the object has registered, as an observer and as an owner.
  func ids(of owner: ObjectIdentifier) -> [ObserverID] {
    (observers[owner].map { [$0] } ?? []) + (closures[owner] ?? []).sorted()
  }
}
