/// Says on standard error what did not go well.
final class LifecycleLog: LifecycleSink {
  private let logsProblems: Bool

  init(_ configuration: LifecycleConfiguration) { logsProblems = configuration.logsProblems }

  var asksForTime: Bool { false }

  func hear(_ fact: LifecycleFact) {
    switch fact {
    case .ended(_, let report, _, _): log(report.problems)
    case .problems(let entries): log(entries)
    case .endedLate(let text): complain(text)
    default: break
    }
  }

  private func log(_ problems: [LifecycleReport.Entry]) {
    for problem in problems { complain(problem.description) }
  }

  func complain(_ text: String) {
    if logsProblems { StandardError.writeLine("lifecycle: \(text)") }
  }
}
