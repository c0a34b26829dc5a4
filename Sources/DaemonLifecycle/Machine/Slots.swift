// SPDX-License-Identifier: Apache-2.0
/// Elements with handles that go stale: the handle of a removed element names nothing, although its place is used
/// again.
struct Slots<Element: Sendable>: Sendable {
  struct Handle: Hashable, Sendable {
    let index: Int
    fileprivate let generation: UInt32
  }

  private struct Item: Sendable {
    var element: Element
    /// The place that owns it.
    let place: Int
  }

  private struct Place: Sendable {
    /// Where its item is; for a free place the next free one, or -1.
    var position: Int
    /// Grows with each removal, so the handle of a removed element never fits.
    var generation: UInt32 = 0
  }

  /// Without gaps, in no order, so that none is ever copied for being optional.
  private var items: [Item] = []
  private var places: [Place] = []
  private var firstFree = -1

  var count: Int { items.count }

  mutating func insert(_ element: consuming Element) -> Handle {
    var index = firstFree
    if index < 0 {
      index = places.count
      places.append(Place(position: items.count))
    } else {
      firstFree = places[index].position
      places[index].position = items.count
    }
    items.append(Item(element: element, place: index))
    return Handle(index: index, generation: places[index].generation)
  }

  /// The last item takes the position of the one that is removed.
  @discardableResult mutating func remove(_ handle: Handle) -> Element? {
    guard contains(handle) else { return nil }
    let (position, last) = (places[handle.index].position, items.count - 1)
    if position < last {
      items.swapAt(position, last)
      places[items[position].place].position = position
    }
    places[handle.index].position = firstFree
    places[handle.index].generation &+= 1
    firstFree = handle.index
    return items.removeLast().element
  }

  func contains(_ handle: Handle) -> Bool {
    handle.index < places.count && places[handle.index].generation == handle.generation
  }

  /// The element, if the handle still names one.
  func find(_ handle: Handle) -> Element? { contains(handle) ? self[handle] : nil }

  /// The element of a handle that is known to be current, changed in place.
  subscript(handle: Handle) -> Element {
    _read { yield items[places[handle.index].position].element }
    _modify { yield &items[places[handle.index].position].element }
  }
}
