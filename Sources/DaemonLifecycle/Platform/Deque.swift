// SPDX-License-Identifier: Apache-2.0
/// A queue that moves each element once at most, and releases it as it is taken.
struct Deque<Element: Sendable>: Sendable {
  /// The elements to take next, in reverse.
  private var front: [Element] = []
  /// The elements after these, in order.
  private var back: [Element] = []

  var isEmpty: Bool { front.isEmpty && back.isEmpty }
  var count: Int { front.count + back.count }
  var first: Element? { front.last ?? back.first }

  func contains(where isWanted: (Element) -> Bool) -> Bool {
    front.contains(where: isWanted) || back.contains(where: isWanted)
  }

  mutating func prepend(_ element: Element) { front.append(element) }

  mutating func append(_ element: Element) { back.append(element) }

  mutating func popFirst() -> Element? {
    // Nearly always there is one element at most, and nothing to move.
    if front.isEmpty, back.count <= 1 { return back.popLast() }
    fillFront()
    return front.popLast()
  }

  private mutating func fillFront() {
    guard front.isEmpty else { return }
    swap(&front, &back)
    front.reverse()
  }

  mutating func removeFirst(where isRemoved: (Element) -> Bool) -> Element? {
    fillFront()
    if let index = front.lastIndex(where: isRemoved) { return front.remove(at: index) }
    return back.firstIndex(where: isRemoved).map { back.remove(at: $0) }
  }
}
