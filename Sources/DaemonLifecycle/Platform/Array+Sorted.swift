// SPDX-License-Identifier: Apache-2.0

extension Array {
  /// Returns the index of the first element for which the condition holds, by binary search: from there on it holds for all.
  func partitioningIndex(where holds: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension Array where Element: Equatable {
  /// Adds an element to a sorted array, or removes it; each is there once. Returns whether that changes it.
  @discardableResult mutating func set(
    _ element: Element, _ isThere: Bool, by isBefore: (Element, Element) -> Bool
  ) -> Bool {
    let index = partitioningIndex { !isBefore($0, element) }
    let wasThere = index < count && self[index] == element
    if isThere, !wasThere { insert(element, at: index) }
    if !isThere, wasThere { remove(at: index) }
    return isThere != wasThere
  }
}
