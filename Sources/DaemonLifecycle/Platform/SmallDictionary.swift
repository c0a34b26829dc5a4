// SPDX-License-Identifier: Apache-2.0
/// A dictionary that is stored as a list while it is short.
///
/// With the first element of a dictionary the runtime makes its type, which takes 30 µs for a new type of keys, and
/// less for another one of these: more than a daemon with a few elements gains by ever looking them up faster.
struct SmallDictionary<Key: Hashable, Value> {
  private static var limit: Int { 16 }
  /// In no order. Empty once there have been more than `limit`, until there are none.
  private var list: [(key: Key, value: Value)] = []
  /// Empty as long as `list` has them.
  private var dictionary: [Key: Value] = [:]

  subscript(key: Key) -> Value? {
    get {
      if !dictionary.isEmpty { return dictionary[key] }
      for element in list where element.key == key { return element.value }
      return nil
    }
    set {
      if !dictionary.isEmpty {
        dictionary[key] = newValue
        return
      }
      let index = list.firstIndex { $0.key == key }
      switch (index, newValue) {
      case (let index?, let value?): list[index].value = value
      case (let index?, nil): list.remove(at: index)
      case (nil, let value?): insert(value, for: key)
      case (nil, nil): break
      }
    }
  }

  private mutating func insert(_ value: Value, for key: Key) {
    guard list.count == Self.limit else { return list.append((key, value)) }
    for element in list { dictionary[element.key] = element.value }
    dictionary[key] = value
    list = []
  }
}

extension SmallDictionary: Sendable where Key: Sendable, Value: Sendable {}
