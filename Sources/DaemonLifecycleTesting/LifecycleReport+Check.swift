// SPDX-License-Identifier: Apache-2.0
public import DaemonLifecycle

extension LifecycleReport {
  /// Throws the report's problems, so that a test fails with their sentences.
  ///
  /// ```swift
  /// try await mock.send(.sigterm).check()
  /// ```
  ///
  /// In XCTest, `XCTAssertNoThrow(try report.check())` fails at its own line.
  ///
  /// - Throws: An error with the cause and a line for each hook that failed, did not end in time, or was not called.
  public func check() throws {
    if !problems.isEmpty { throw ReportProblems(report: self) }
  }
}

private struct ReportProblems: Error, CustomStringConvertible {
  let report: LifecycleReport

  var description: String {
    (["\(report.cause):"] + report.problems.map { "  \($0)" }).joined(separator: "\n")
  }
}
