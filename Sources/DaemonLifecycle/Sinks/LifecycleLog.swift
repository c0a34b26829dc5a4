/// Says on standard error what did not go well.
final class LifecycleLog: LifecycleSink {
  var asksForTime: Bool { false }

  func hear(_ fact: LifecycleFact) {
    switch fact {
    case .ended(_, let report, _, _): log(report.problems)
    case .problems(let entries): log(entries)
    case .endedLate(let text): StandardError.writeLine("lifecycle: \(text)")
    default: break
    }
  }

  private func log(_ problems: [LifecycleReport.Entry]) {
    for problem in problems { StandardError.writeLine("lifecycle: \(problem)") }
  }
}
