// SPDX-License-Identifier: Apache-2.0
import CLinux
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Whole lives of a daemon in virtual time. MACHINE_SCHEDULES says how many; a hundred thousand in CI.
@Suite(.offThePool) struct MachineSimulationTests {
  private static let schedules =
    getenv("MACHINE_SCHEDULES").flatMap { UInt64(String(cString: $0)) } ?? 2000

  @Test func everyInvariantHoldsInEverySchedule() {
    // Other lives for each SEED: none has a million.
    let first = SeededGenerator.chosen &* 1_000_000
    for seed in first..<first + Self.schedules {
      var simulation = MachineSimulation(seed: seed)
      simulation.run()
      guard let violation = simulation.violation else { continue }
      var again = MachineSimulation(seed: seed, tellsStory: true)
      again.run()
      Issue.record("seed \(seed): \(violation)\n\(again.story.suffix(60).joined(separator: "\n"))")
      return
    }
  }

  @Test func theSameSeedIsTheSameStory() {
    for seed in 0..<50 as Range<UInt64> {
      var first = MachineSimulation(seed: seed)
      var second = MachineSimulation(seed: seed)
      first.run()
      second.run()
      #expect(first.trace == second.trace && first.trace.count > 0)
    }
  }

  /// Most in the first schedules, and those that concern rare moments in one or two thousand.
  @Test(arguments: MachineLie.allCases) func aLieIsFound(_ lie: MachineLie) {
    for seed in 0..<20_000 as Range<UInt64> {
      var simulation = MachineSimulation(seed: seed, lie: lie)
      simulation.run()
      if simulation.violation != nil { return }
    }
    Issue.record("not found in 20,000 schedules")
  }
}
