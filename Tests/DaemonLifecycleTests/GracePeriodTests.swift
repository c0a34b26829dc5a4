// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// The stop budget out of a variable.
@Suite("Grace period") struct GracePeriodTests {
  private static let name = "TERMINATION_GRACE_PERIOD_SECONDS"

  private func taken(
    _ value: String?, preStop: Duration = .zero, before: Duration? = nil
  ) throws(LifecycleError) -> Duration? {
    var configuration = LifecycleConfiguration(stopTimeout: before)
    let environment = ServiceEnvironment(value.map { [Self.name: $0] } ?? [:])
    let budget = try configuration.setStopTimeout(
      fromEnvironment: Self.name, preStop: preStop, in: environment)
    if let budget { #expect(configuration.stopTimeout == budget) }
    return configuration.stopTimeout
  }

  /// A margin is left; preStop is part of it; and the less counts.
  @Test(
    arguments: [
      ("30", 0, nil, 28), ("10", 0, nil, 9), ("1", 0, nil, 0.9), ("3600", 0, nil, 3598),
      ("30", 5, nil, 23), ("30", -5, nil, 28), ("30", 0, 10, 10), ("30", 0, 100, 28),
      (nil, 0, nil, nil), (nil, 0, 7, 7),
    ] as [(String?, Int, Int?, Double?)])
  func itIsTheBudget(value: String?, preStop: Int, before: Int?, budget: Double?) throws {
    let taken = try taken(
      value, preStop: .seconds(preStop), before: before.map { .seconds($0) })
    #expect(taken == budget.map { .seconds($0) })
  }

  @Test(arguments: [
    "", " ", "soon", "-30", "+30", "30.5", "1e3", "30 40", "30s", "1min 30s", " 30", "0x1e", "30\n",
    "٣٠", "99999999999999999999999999",
  ])
  func whatIsNoTimeIsRefused(value: String) {
    let error = #expect(throws: LifecycleError.self) { try taken(value) }
    var configuration = LifecycleConfiguration(stopTimeout: .seconds(3))
    #expect(throws: LifecycleError.self) {
      try configuration.setStopTimeout(
        fromEnvironment: Self.name, in: ServiceEnvironment([Self.name: value]))
    }
    #expect(configuration.stopTimeout == .seconds(3), "it is as it was")
    #expect(
      error?.description
        == "The grace period in $\(Self.name), \"\(value)\", is not a whole number of seconds:"
        + " set it to the seconds between SIGTERM and SIGKILL.")
  }

  @Test(arguments: [
    ("0", "no time at all"), ("31622401", "more than a year"), ("5", "no more than the 5 s"),
  ])
  func whatCanNotBeIsRefused(value: String, reason: String) {
    let error = #expect(throws: LifecycleError.self) { try taken(value, preStop: .seconds(5)) }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }
}
