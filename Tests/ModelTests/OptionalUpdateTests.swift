// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Testing

@testable import DaemonLifecycle

/// What `state.round?.field = x` does not do in a noncopyable struct with Swift 6.3.1.
@Suite struct OptionalUpdateTests {
  private final class Counted: Sendable {
    let living: Count
    init(_ living: Count) {
      self.living = living
      living.value.add(1, ordering: .relaxed)
    }
    deinit { living.value.subtract(1, ordering: .relaxed) }
  }
  private final class Count: Sendable { let value = Atomic<Int>(0) }
  private struct Round: Equatable {
    static func == (a: Round, b: Round) -> Bool { a.found.elementsEqual(b.found, by: ===) }
    var found: [Counted] = []
  }
  private struct State: ~Copyable { var round: Round? }

  @Test func anUpdateLetsGoOfTheOldValue() {
    let living = Count()
    var state = State(round: Round())
    for _ in 0..<3 { state.round.update { $0.found = [Counted(living)] } }
    #expect(living.value.load(ordering: .relaxed) == 1)
    state.round = nil
    #expect(living.value.load(ordering: .relaxed) == 0)
  }

  @Test func nothingIsUpdatedWhereThereIsNothing() {
    var none: Round?
    none.update { _ in Issue.record("called") }
    #expect(none == nil)
  }
}
