// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
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
    let budget = try configuration.takeStopTimeout(
      fromEnvironment: Self.name, preStop: preStop, in: environment)
    if let budget { #expect(configuration.stopTimeout == budget) }
    return configuration.stopTimeout
  }

  @Test func leavesAMargin() throws {
    #expect(try taken("30") == .seconds(28))
    #expect(try taken("10") == .seconds(9))
    #expect(try taken("1") == .milliseconds(900))
    #expect(try taken("3600") == .seconds(3598))
  }

  @Test func preStopIsPartOfIt() throws {
    #expect(try taken("30", preStop: .seconds(5)) == .seconds(23))
    #expect(try taken("30", preStop: .seconds(-5)) == .seconds(28))
  }

  @Test func theLessCounts() throws {
    #expect(try taken("30", before: .seconds(10)) == .seconds(10))
    #expect(try taken("30", before: .seconds(100)) == .seconds(28))
  }

  @Test func withoutTheVariableNothingChanges() throws {
    #expect(try taken(nil) == nil)
    #expect(try taken(nil, before: .seconds(7)) == .seconds(7))
  }

  @Test(arguments: [
    "", " ", "soon", "-30", "+30", "30.5", "1e3", "30 40", "30s", "1min 30s", " 30", "0x1e", "30\n",
    "٣٠", "99999999999999999999999999",
  ])
  func whatIsNoTimeIsRefused(value: String) {
    let error = #expect(throws: LifecycleError.self) { try taken(value) }
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

  @Test func aBadOneChangesNothing() {
    var configuration = LifecycleConfiguration(stopTimeout: .seconds(3))
    let environment = ServiceEnvironment([Self.name: "x"])
    #expect(throws: LifecycleError.self) {
      try configuration.takeStopTimeout(fromEnvironment: Self.name, in: environment)
    }
    #expect(configuration.stopTimeout == .seconds(3))
  }
}
