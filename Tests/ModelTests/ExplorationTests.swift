// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Every state that a daemon with no, one or two observers can be in: what always holds, holds in each, and from each a
/// SIGTERM ends it in time although all its hooks hang.
///
/// EXPLORED_STATES says how many to look at for each setup; 0: all there are, which takes memory and hours for two
/// observers. Unless it is set, so many that a debug build is through with them in a few seconds.
@Suite(.serialized, .offThePool) struct ExplorationTests {
  private static let limit: Int = {
    guard let text = getenv("EXPLORED_STATES"), let number = Int(String(cString: text)) else {
      return 3000
    }
    return number == 0 ? .max : number
  }()

  static let setups: [MachineModel.Setup] = [
    .init(), .init(drains: true), .init(observers: 1), .init(observers: 1, drains: true),
    .init(observers: 1, joinsLate: true),
    .init(observers: 2), .init(observers: 2, isConcurrent: true),
    .init(observers: 2, drains: true, joinsLate: true),
    .init(work: .foreground), .init(observers: 1, work: .foreground),
    .init(observers: 1, work: .task),
  ]

  @Test(arguments: setups) func everyInvariantHoldsInEveryState(_ setup: MachineModel.Setup) {
    var explorer = StateExplorer<MachineModel>()
    var known: Set<StateKey> = []
    explorer.explore(from: MachineModel(setup), limit: Self.limit) { state in
      state.endsAfterSignal(&known) ? nil : "a SIGTERM does not end it"
    }
    let result = explorer.result
    let part = result.isComplete ? "all" : "the nearest"
    print("explored \(setup): \(part) \(result.states) states, \(result.transitions) transitions")
    if let (text, events) = result.violation {
      Issue.record("\(text)\n  \(events.joined(separator: "\n  "))")
    }
    #expect(result.states > 50)
  }
}
