// SPDX-License-Identifier: Apache-2.0
/// The messages to be sent outside of the lock, in order; one thread at a time sends.
struct Outbox: Sendable {
  enum Item: Sendable {
    /// For the sinks.
    case fact(LifecycleFact)
    /// Anything else.
    case call(@Sendable () -> Void)
  }

  private var items: [Item] = []
  private(set) var isDelivering = false

  var isEmpty: Bool { items.isEmpty }

  mutating func append(_ call: @escaping @Sendable () -> Void) { items.append(.call(call)) }
  mutating func append(_ fact: LifecycleFact) { items.append(.fact(fact)) }

  /// Moves the next messages into `batch`, which is empty, and whose capacity is reused. Returns false when there are
  /// none: the thread then no longer sends.
  mutating func take(into batch: inout [Item]) -> Bool {
    isDelivering = !items.isEmpty
    swap(&items, &batch)
    return isDelivering
  }
}
