// SPDX-License-Identifier: Apache-2.0
/// A queue that does not move waiting elements, and releases each element as it is taken.
struct Deque<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }
  var count: Int { elements.count - head }
  var first: Element? { head < elements.count ? elements[head] : nil }
  /// Places taken up, used ones included.
  var capacity: Int { elements.count }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func prepend(_ element: Element) {
    if head > 0 {
      head -= 1
      elements[head] = element
    } else {
      elements.insert(element, at: 0)
    }
  }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    // The only one, as nearly always: nothing to be tidied up.
    if elements.count == 1 { return elements.removeLast() }
    let element = elements[head].take()
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 32, head > elements.count / 2 {
      // One that never runs empty must not grow for ever; each element is moved once for this, on average.
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}

extension Deque: Sendable where Element: Sendable {}
