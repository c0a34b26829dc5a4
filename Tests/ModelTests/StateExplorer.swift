// SPDX-License-Identifier: Apache-2.0
/// Walks every state that a model can reach, breadth first, and checks each once.
///
/// What is kept of a state is a hash of 128 bits, and how it was reached, so that a violation comes with the shortest
/// list of events that leads to it.
struct StateExplorer<Model: ExplorableModel>: ~Copyable {
  struct Result {
    var states = 0
    var transitions = 0
    /// No state was left out.
    var isComplete = true
    /// What is wrong with one, and the events that lead there.
    var violation: (text: String, events: [String])?
  }

  /// How one state was reached: from that one, by that event.
  private struct Step {
    let parent: Int
    let event: Model.Event
  }

  private var known: Set<StateKey> = []
  /// In the order of their discovery; the first have been reached by nothing.
  private var steps: [Step?] = []
  private var frontier: [(state: Model, number: Int)] = []
  private(set) var result = Result()

  /// - Parameters:
  ///   - limit: How many states are looked at, at most.
  ///   - check: What is wrong with a state, beside what the model itself sees.
  mutating func explore(from initial: Model, limit: Int, check: (Model) -> String?) {
    discover(initial, by: nil, check)
    while !frontier.isEmpty, result.violation == nil {
      let layer = frontier
      frontier = []
      for (state, number) in layer {
        if result.states >= limit {
          result.isComplete = false
          return
        }
        for event in state.events {
          result.transitions += 1
          discover(state.after(event), by: Step(parent: number, event: event), check)
          if result.violation != nil { return }
        }
      }
    }
  }

  private mutating func discover(_ state: Model, by step: Step?, _ check: (Model) -> String?) {
    guard known.insert(state.key).inserted else { return }
    result.states += 1
    steps.append(step)
    if let text = state.violation ?? check(state) {
      result.violation = (text, events(to: steps.count - 1))
    } else {
      frontier.append((state, steps.count - 1))
    }
  }

  private func events(to number: Int) -> [String] {
    var (events, next): ([String], Int) = ([], number)
    while let step = steps[next] {
      events.append("\(step.event)")
      next = step.parent
    }
    return events.reversed()
  }
}

/// Something with states, as the explorer sees it. `after` leaves the state as it is.
protocol ExplorableModel {
  associatedtype Event
  /// What may happen next.
  var events: [Event] { get }
  func after(_ event: Event) -> Self
  /// The same for states that nothing can tell apart.
  var key: StateKey { get }
  /// What is wrong with the state.
  var violation: String? { get }
}

/// 128 bits that stand for a state.
struct StateKey: Hashable {
  private var a: UInt64 = 0x9e37_79b9_7f4a_7c15
  private var b: UInt64 = 0xc2b2_ae3d_27d4_eb4f

  mutating func add(_ number: Int) {
    let word = UInt64(bitPattern: Int64(number))
    a = (a ^ word) &* 0xff51_afd7_ed55_8ccd
    a ^= a >> 32
    b = (b &+ word) &* 0xc4ce_b9fe_1a85_ec53
    b ^= b >> 29
  }
  mutating func add(_ bit: Bool) { add(bit ? 1 : 0) }
}
