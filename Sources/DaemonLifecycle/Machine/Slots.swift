/// Elements with handles that go stale: the handle of a removed element names nothing, although its place is used
/// again.
struct Slots<Element: Sendable>: Sendable {
  struct Handle: Hashable, Sendable {
    let index: Int
    fileprivate let generation: UInt32
  }

  private struct Place: Sendable {
    /// Where its element is; for a free place the next free one, or -1.
    var position: Int
    /// Grows with each removal.
    var generation: UInt32 = 0
    var isFree = false
  }

  /// Without gaps, in no order, so that none is ever copied for being optional.
  private var elements: [Element] = []
  /// The place that owns each element.
  private var owners: [Int] = []
  private var places: [Place] = []
  private var firstFree = -1

  var count: Int { elements.count }

  mutating func insert(_ element: Element) -> Handle {
    var index = firstFree
    if index < 0 {
      index = places.count
      places.append(Place(position: elements.count))
    } else {
      firstFree = places[index].position
      places[index].position = elements.count
      places[index].isFree = false
    }
    elements.append(element)
    owners.append(index)
    return Handle(index: index, generation: places[index].generation)
  }

  /// The last of `elements` takes the place of the one that is removed.
  @discardableResult mutating func remove(_ handle: Handle) -> Element? {
    guard contains(handle) else { return nil }
    let position = places[handle.index].position
    let last = elements.count - 1
    elements.swapAt(position, last)
    owners.swapAt(position, last)
    places[owners[position]].position = position
    places[handle.index].position = firstFree
    places[handle.index].generation &+= 1
    places[handle.index].isFree = true
    firstFree = handle.index
    owners.removeLast()
    return elements.removeLast()
  }

  func contains(_ handle: Handle) -> Bool {
    guard handle.index < places.count else { return false }
    let place = places[handle.index]
    return place.generation == handle.generation && !place.isFree
  }

  /// The element, if the handle still names one.
  func find(_ handle: Handle) -> Element? { contains(handle) ? self[handle] : nil }

  /// The element of a handle that is known to be current, changed in place.
  subscript(handle: Handle) -> Element {
    get { elements[places[handle.index].position] }
    _modify { yield &elements[places[handle.index].position] }
  }
}
