// SPDX-License-Identifier: Apache-2.0
/// A collection of elements with handles. The handle of a removed element becomes invalid, although its place is used
/// again.
struct Slots<Element: Sendable>: Sendable {
  /// The elements, without gaps and in no order, so that none is copied for being optional.
  private var elements: [Element] = []
  /// The index of the place that refers to each element.
  private var placeOfElement: [Int] = []
  private var places: [SlotPlace] = []
  private var firstFree = -1

  var count: Int { elements.count }

  mutating func insert(_ element: consuming Element) -> SlotHandle {
    var index = firstFree
    if index < 0 {
      index = places.count
      places.append(SlotPlace(position: elements.count))
    } else {
      firstFree = places[index].position
      places[index].position = elements.count
    }
    elements.append(element)
    placeOfElement.append(index)
    return SlotHandle(index: index, generation: places[index].generation)
  }

  /// Removes an element; the last one takes its position.
  @discardableResult mutating func remove(_ handle: SlotHandle) -> Element? {
    guard contains(handle) else { return nil }
    let (position, last) = (places[handle.index].position, elements.count - 1)
    if position < last {
      elements.swapAt(position, last)
      placeOfElement.swapAt(position, last)
      places[placeOfElement[position]].position = position
    }
    placeOfElement.removeLast()
    places[handle.index].position = firstFree
    places[handle.index].generation &+= 1
    firstFree = handle.index
    return elements.removeLast()
  }

  func contains(_ handle: SlotHandle) -> Bool {
    handle.index < places.count && places[handle.index].generation == handle.generation
  }

  /// Returns the element, if the handle is still valid.
  func find(_ handle: SlotHandle) -> Element? { contains(handle) ? self[handle] : nil }

  /// The element of a handle that is known to be current, changed in place.
  subscript(handle: SlotHandle) -> Element {
    _read { yield elements[places[handle.index].position] }
    _modify { yield &elements[places[handle.index].position] }
  }
}

// Not nested in the generic type, where they would be generic too, and made at run time.
struct SlotHandle: Hashable, Sendable {
  let index: Int
  fileprivate let generation: UInt32
}

private struct SlotPlace: Sendable {
  /// The index of the element; for a free place the next free one, or -1.
  var position: Int
  /// A number that grows with each removal, so that the handle of a removed element never matches.
  var generation: UInt32 = 0
}
