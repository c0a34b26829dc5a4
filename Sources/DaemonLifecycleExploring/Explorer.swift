// SPDX-License-Identifier: Apache-2.0
internal import CLinux
import DaemonLifecycle
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization

/// Performs runs of a daemon, each with other choices, on the calling thread.
final class Explorer: Sendable {
  typealias Daemon = @Sendable (ExploredRun) async throws -> ExploredRun.Check

  /// The events that may happen to the daemon, by their words.
  let events: [String: @Sendable (MockLifecycleSubject) -> Void]
  /// The words; the last one ends the daemon.
  let words: [String]
  let coverage = Mutex(Exploration())
  /// The number of steps of all runs. While it is unchanged, a job holds its thread.
  let steps = Atomic<Int>(0)
  let isCancelled = Atomic<Bool>(false)
  /// The run that is being performed.
  let current = Mutex<ExploredRun?>(nil)
  let trace = TraceFile()
  /// The longest sleep that may end although jobs are ready: a few of them are far shorter than a hook's time limit.
  let longestEarlySleep: Duration
  private let daemon: Daemon
  private let configuration: LifecycleConfiguration

  init(
    _ configuration: LifecycleConfiguration, sending requests: [LifecycleRequest],
    _ daemon: @escaping Daemon
  ) {
    self.configuration = configuration
    self.daemon = daemon
    longestEarlySleep = configuration.hookTimeout / 8
    var events: [String: @Sendable (MockLifecycleSubject) -> Void] = [:]
    // Several posts may be of one type.
    func add(_ word: String, _ event: @escaping @Sendable (MockLifecycleSubject) -> Void) {
      let count = events.keys.count { $0 == word || $0.hasPrefix("\(word)_") }
      events[count == 0 ? word : "\(word)_\(count + 1)"] = event
    }
    for request in [.sleep, .wakeUp, .pressure, .terminate] + requests {
      add(request.word) { $0.inject(request) }
    }
    for signal in configuration.signals.signals {
      switch configuration.signals[signal] {
      case .post(let notification)?:
        add(LifecycleRequest.post(notification).word) { $0.inject(signal) }
      case let request?: events[request.word] = { $0.inject(signal) }
      case nil: break
      }
    }
    self.events = events
    let end = LifecycleRequest.terminate.word
    words = events.keys.filter { $0 != end }.sorted() + [end]
    coverage.withLock { [words] coverage in
      for word in words { coverage.situations[word] = [] }
    }
  }

  // MARK: Runs

  private func begin(_ choices: Choices) throws -> ExploredRun {
    if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
    let run = ExploredRun(choices, configuration)
    current.withLock { $0 = run }
    do { try run.begin(daemon) } catch {
      run.end()
      throw error
    }
    return run
  }

  /// Performs the run that a text describes, and returns its problem.
  private func perform(_ text: String) throws -> (run: ExploredRun, problem: String?) {
    trace.write(text)
    let run = try begin(choices(text))
    defer { run.end() }
    let problem = run.go(self)
    coverage.withLock {
      $0.runs += 1
      $0.choices += run.choices.withLock(\.count)
      if run.mock.core.now == MonotonicTime(nanoseconds: 0) { $0.runsWithoutTime += 1 }
    }
    try run.jobs.checkCapture()
    return (run, problem)
  }

  // MARK: The search

  func replay(_ text: String) throws -> Exploration {
    let (run, problem) = try perform(text)
    if let problem { throw failure(of: run, problem, "") }
    return coverage.withLock { $0 }
  }

  func explore(
    _ count: Int, for duration: Duration, upTo runs: Int, seed: UInt64
  ) throws -> Exploration {
    let count = min(count, 1000)
    // This run stays as it is meanwhile, so that a sleep on the real clock has time to end, and is noticed.
    let parked = try begin(Choices())
    _ = parked.go(self, untilRest: true)
    defer {
      _ = parked.go(self)
      parked.end()
    }
    let began = MonotonicTime.now()
    // Far from the seed of another exploration, so that no two make the same runs. Not multiplied by the generator's
    // own increment: both would get the same numbers, one of them one step later.
    var (seed, turn, text, length) = (seed &* 0xbf58_476d_1ce4_e5b9, 0, "", 0)
    var found: (run: ExploredRun, problem: String)?
    // How many runs look for a shorter failure, if this one is long. Not a time: a busy machine would find another one.
    var runsLeft = 200
    func goesOn() -> Bool {
      if let found { return found.run.length > 2 && runsLeft > 0 }
      return length == 0
        || began.duration(to: .now()) < duration && coverage.withLock(\.runs) < runs
    }
    while goesOn() {
      let (run, problem) = try perform(text)
      try parked.jobs.checkCapture()
      if length == 0 { length = run.choices.withLock(\.step) + 20 * count }
      if found != nil { runsLeft -= 1 }
      if let problem {
        let other = try shortest(run, problem, &runsLeft)
        if other.run.length < found?.run.length ?? .max { found = other }
      }
      turn += 1
      let order = turn.isMultiple(of: 2) ? order(turn / 2, upTo: min(count, 3)) : nil
      text = order ?? "seed:\(seed):\(count):\(length)"
      if order == nil { seed &+= 1 }
    }
    guard let (run, problem) = found else { return coverage.withLock { $0 } }
    // A hook that hangs may wait for another thread, which a busy machine delays.
    let patience = problem.hasSuffix("the real clock.") ? 160 : 20
    for _ in 0..<patience where !run.jobs.hasEscaped && !parked.jobs.hasEscaped { usleep(5000) }
    for run in [run, parked] { try run.jobs.checkCapture() }
    let (runs, time) = (coverage.withLock(\.runs), began.duration(to: .now()).forReading)
    throw failure(of: run, problem, "\nFound in \(runs) run\(runs == 1 ? "" : "s"), \(time).")
  }

  /// The orders of few events, each of which arrives at rest, the shortest first; `nil` after the last.
  func order(_ number: Int, upTo count: Int) -> String? {
    let events = words.dropLast()
    var (number, order) = (number, [String]())
    while number > 0 {
      number -= 1
      order.append("rest:" + events[number % events.count])
      number /= events.count
    }
    return order.count > count ? nil : order.joined(separator: " ")
  }

  /// Leaves choices out as long as the run fails without them, and moves the others to earlier steps.
  private func shortest(
    _ failed: ExploredRun, _ problem: String, _ runsLeft: inout Int
  ) throws -> (run: ExploredRun, problem: String) {
    var (shortest, problem) = (failed, problem)
    var (size, start) = (failed.length, 0)
    while size > 0, runsLeft > 0 {
      runsLeft -= 1
      let record = shortest.choices.withLock(\.record)
      let left = Array(record.prefix(start) + record.dropFirst(start + size))
      let (run, stillWrong) = try perform(Self.text(of: left))
      if let stillWrong, run.length < record.count {
        (shortest, problem) = (run, stillWrong)
        // Choices that were needed before may not be any more.
        if size == 1 { start = 0 }
      } else {
        start += size
      }
      if start >= shortest.length { (size, start) = (size / 2, 0) }
    }
    var record = shortest.choices.withLock(\.record)
    for index in record.indices where Int(record[index].word) == nil {
      var less = record[index].step / 2
      while less > 0, runsLeft > 0 {
        runsLeft -= 1
        var sooner = record
        sooner[index].step -= less
        let (run, stillWrong) = try perform(Self.text(of: sooner))
        if let stillWrong, run.length <= sooner.count {
          (shortest, problem, record) = (run, stillWrong, sooner)
        }
        less = min(less, record[index].step) / 2
      }
    }
    return (shortest, problem)
  }

  // MARK: Texts

  private func failure(of run: ExploredRun, _ problem: String, _ effort: String) -> ExplorationError
  {
    let history = run.history.withLock { $0.joined(separator: "\n  ") }
    let text = Self.text(of: run.choices.withLock(\.record))
    return ExplorationError("\(problem)\n  \(history)\(effort)\nAgain with: replaying: \"\(text)\"")
  }

  static func text(of record: [(step: Int, word: String)]) -> String {
    record.map { "\($0.step == .max ? "rest" : "\($0.step)"):\($0.word)" }.joined(separator: " ")
  }

  private func choices(_ text: String) throws -> Choices {
    let seed = text.split { $0 == ":" || $0.isWhitespace }
    if seed.count == 4, seed[0] == "seed", let number = UInt64(seed[1]),
      let count = UInt16(seed[2]),
      let length = UInt16(seed[3])
    {
      return Choices(
        seed: number, events: words, upTo: Int(count), length: max(1, Int(length)))
    }
    return Choices(
      given: try text.split(whereSeparator: \.isWhitespace).map { part in
        let parts = part.split(separator: ":", maxSplits: 1).map(String.init)
        guard parts.count == 2, let step = parts[0] == "rest" ? .max : Int(parts[0]),
          words.contains(parts[1])
            || step < .max && !Choices.isEvent(parts[1]) && Int(parts[1]) ?? 1 > 0
        else {
          throw ExplorationError(
            "\"\(part)\" can't be replayed: it is no step with one of the words \(words.joined(separator: ", ")), +1,"
              + " clock and fails.")
        }
        return (step, parts[1])
      })
  }
}

/// An error of an exploration: what it has found, or why it can't explore.
struct ExplorationError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A file with the choices of the run that is being performed, which is left behind by a crash.
final class TraceFile: Sendable {
  private let path: String
  private let file: Int32

  init() {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    path = "\(folder)/explored-\(getpid())-\(UInt32.random(in: .min ... .max))"
    file = clinux_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
  }

  deinit {
    remove()
    close(file)
  }

  func remove() { unlink(path) }

  func write(_ text: String) {
    let line = text + "\n"
    ftruncate(file, 0)
    pwrite(file, line, line.utf8.count, 0)
  }
}

extension LifecycleRequest {
  /// The word for it in a text to replay.
  fileprivate var word: String {
    let word =
      switch self {
      case .pause(let reason): reason == .operator ? "pause" : "pause(\(reason.name))"
      case .resume(let reason): reason == .operator ? "resume" : "resume(\(reason.name))"
      case .post(let notification): "\(type(of: notification))"
      default: "\(self)"
      }
    return word.split { $0.isWhitespace || $0 == ":" }.joined(separator: "_")
  }
}
