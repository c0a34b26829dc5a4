// What a timeline says: short, since it has a bar beside it.
extension LifecycleTimeline.Segment {
  /// `saved`, `save failed: disk full`, `pause abandoned: did not end`.
  public var description: String {
    let words = activity.words
    return switch outcome {
    case .completed: words.done
    case .failed(let error): "\(words.act) failed: \((errorText ?? "\(error)").onOneLine)"
    case .timedOut: "\(words.act) timed out"
    case .abandoned(.waitingForExecutor): "\(words.act) abandoned: never got its executor"
    case .abandoned: "\(words.act) abandoned: did not end"
    case .skipped(.gone): "gone"
    case .skipped(.busy): "\(words.act) skipped: busy with an abandoned hook"
    case .skipped(.outOfTime): "\(words.act) skipped: out of time"
    case .skipped(.noThread): "\(words.act) skipped: no thread"
    case .skipped(.overtaken): "\(words.act) skipped: overtaken"
    }
  }

  /// Whether it had not ended when the delivery went on.
  var isUnfinished: Bool { if case .abandoned = outcome { true } else { false } }

  fileprivate var isBusy: Bool { if case .skipped(.busy) = outcome { true } else { false } }
}

extension LifecycleTimeline.Activity {
  /// When it is done, and for "… failed".
  fileprivate var words: (done: String, act: String) {
    switch self {
    case .hook(let type):
      NotificationKind(type).map { ($0.row.done, $0.row.act) }
        ?? ("\(type)".onOneLine, "\(type)".onOneLine)
    case .body: ("ended", "end")
    case .drain: ("served on", "drain")
    case .overtaken: ("had to end first", "end")
    }
  }
}

extension LifecycleTimeline.Row {
  /// What it did, what went wrong first. Where one of several things took most of the time, its time.
  var text: String { isProblem ? problemText : timedText }

  private var problemText: String {
    var isUnfinished = false
    for segment in segments where segment.isUnfinished { isUnfinished = true }
    var (bad, good) = ("", "")
    for segment in segments {
      // That others were left out follows from a hook that has not ended.
      if isUnfinished, segment.isBusy { continue }
      if segment.isProblem { bad.list(segment.description) } else { good.list(segment.description) }
    }
    if !good.isEmpty { bad.list(good) }
    return bad
  }

  private var timedText: String {
    var slowest = Duration.zero
    for segment in segments { slowest = max(slowest, segment.duration) }
    var saysTime = slowest >= .milliseconds(10) && slowest.forReading != duration.forReading
    var text = ""
    var last = ""
    for segment in segments {
      var part = segment.description
      if saysTime, segment.duration == slowest {
        part += " (\(slowest.forReading))"
        saysTime = false
      }
      if part != last { text.list(part) }
      last = part
    }
    return text
  }
}

extension String {
  /// Appends one more to a list.
  fileprivate mutating func list(_ part: String) {
    if !isEmpty { self += ", " }
    self += part
  }
}

extension Duration {
  /// `0.4 ms`, `40 ms`, `1.2 s`, `90 s`: never more than it was.
  var forReading: String {
    let microseconds = max(0, saturatedNanoseconds) / 1000
    if microseconds < 1000 { return microseconds < 100 ? "0 ms" : "0.\(microseconds / 100) ms" }
    let milliseconds = microseconds / 1000
    if milliseconds < 1000 { return "\(milliseconds) ms" }
    let tenth = milliseconds / 100 % 10
    return tenth == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds / 1000).\(tenth) s"
  }
}
