// SPDX-License-Identifier: Apache-2.0
package import DaemonLifecycle
import Glibc

/// A subject that has been launched, without signals and systemd, whose hooks have all the time they want.
package func startedSubject() async -> LifecycleSubject {
  var configuration = LifecycleConfiguration(signals: [:], hookTimeout: .seconds(3600))
  configuration.interfaces = .plain
  let lifecycle = LifecycleSubject(configuration: configuration)
  await launch(lifecycle)
  return lifecycle
}

/// Runs a subject, and returns when it has entered the foreground: a pause before that would be no event for observers.
/// Without a body: that is a task on Swift's pool, which costs more.
@discardableResult
package func launch(_ lifecycle: LifecycleSubject) async -> Task<LifecycleExit, any Error> {
  let (launched, launch) = AsyncStream.makeStream(of: Never.self)
  let token = lifecycle.observe(WillEnterForeground.self) { _ in launch.finish() }
  let run = Task { try await lifecycle.run() }
  for await _ in launched {}
  token.cancel()
  return run
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
