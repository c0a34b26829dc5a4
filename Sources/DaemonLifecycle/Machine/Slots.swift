/// Elements in numbered places, with handles that go stale: one of a removed element names nothing, although its place is
/// used again.
struct Slots<Element: Sendable>: Sendable {
  struct Handle: Hashable, Sendable {
    let index: Int
    fileprivate let generation: UInt32
  }

  private struct Place: Sendable {
    var element: Element?
    /// Grows with each removal.
    var generation: UInt32 = 0
  }

  private var places: [Place] = []
  /// The places without an element.
  private var free: [Int] = []

  var count: Int { places.count - free.count }
  var isEmpty: Bool { count == 0 }

  mutating func insert(_ element: Element) -> Handle {
    let index = free.popLast() ?? places.count
    if index == places.count { places.append(Place()) }
    places[index].element = element
    return Handle(index: index, generation: places[index].generation)
  }

  @discardableResult mutating func remove(_ handle: Handle) -> Element? {
    guard contains(handle), let element = places[handle.index].element.take() else { return nil }
    places[handle.index].generation &+= 1
    free.append(handle.index)
    return element
  }

  func contains(_ handle: Handle) -> Bool {
    places.indices.contains(handle.index) && places[handle.index].generation == handle.generation
      && places[handle.index].element != nil
  }

  /// The element, if the handle still names one.
  func find(_ handle: Handle) -> Element? { contains(handle) ? places[handle.index].element : nil }

  /// The element of a handle that is known to be current, changed in place.
  subscript(handle: Handle) -> Element {
    _read { yield places[handle.index].element! }
    _modify { yield &places[handle.index].element! }
  }
}
