// SPDX-License-Identifier: Apache-2.0
package import DaemonLifecycle
import Glibc

/// A subject that has been launched, without signals and systemd, whose hooks have all the time they want.
package func startedSubject() async -> LifecycleSubject {
  var configuration = LifecycleConfiguration(signals: [:], hookDeadline: .seconds(3600))
  configuration.systemd = .off
  let lifecycle = LifecycleSubject(configuration: configuration)
  do { try await lifecycle.start() } catch { check(false, "\(error)") }
  return lifecycle
}

/// Ends the process with a sentence when a contestant has not done its work.
package func check(_ isTrue: Bool, _ sentence: @autoclosure () -> String) {
  guard !isTrue else { return }
  print("\(sentence())")
  exit(70)
}

/// Saves, one after another, each with its report.
package struct Saves {
  private let lifecycle: LifecycleSubject
  private var reports: AsyncStream<LifecycleReport>.Iterator

  package init(_ lifecycle: LifecycleSubject) {
    self.lifecycle = lifecycle
    reports = lifecycle.reports().makeAsyncIterator()
  }

  /// Returns when every hook has ended.
  package mutating func next() async -> LifecycleReport {
    lifecycle.saveState()
    while let report = await reports.next() {
      if !report.entries.isEmpty, report.entries[0].notification == ShouldSaveState.self {
        return report
      }
    }
    check(false, "the subject is gone")
    exit(1)
  }
}
