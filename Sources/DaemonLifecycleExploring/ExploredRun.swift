// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
public import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization

/// One run of a daemon that is explored: see `MockLifecycleSubject.explore`.
public final class ExploredRun: Sendable {
  typealias Check = @Sendable () async throws -> Void

  /// A run with more steps counts as endless.
  static let mostSteps = 20_000

  /// The lifecycle of this run. The exploration launches it, sends it events, moves its clock, and ends it.
  public let mock: MockLifecycleSubject

  let jobs = RunJobs()
  let choices: Mutex<Choices>
  /// The number of choices that differ from the default.
  var length: Int { choices.withLock(\.record.count) }
  /// What happened, in words.
  let history = Mutex(["launch"])
  private let check = Mutex<Check>({})
  private let exit = Mutex<LifecycleExit?>(nil)

  init(_ choices: Choices, _ configuration: LifecycleConfiguration) {
    self.choices = Mutex(choices)
    mock = MockLifecycleSubject(
      state: .launching, configuration: configuration, pool: RunJobs.pool)
  }

  /// Whether a fake of the daemon, such as its disk or its network, should fail now. The exploration chooses.
  ///
  /// ```swift
  /// let disk = FakeDisk(fails: { run.shouldFail("disk full") })
  /// ```
  ///
  /// - Parameter what: The failure, for the description of a run.
  public func shouldFail(_ what: String) -> Bool {
    let fails = choices.withLock { $0.fails() }
    if fails { note("\"\(what)\" fails") }
    return fails
  }

  private func note(_ event: String) {
    let time = MonotonicTime(nanoseconds: 0).duration(to: mock.core.now).forReading
    let step = choices.withLock(\.step)
    history.withLock { $0.append("step \(step), at \(time): \(event)") }
  }

  // MARK: Performing it

  /// Sets the daemon up, and has it launched by the first steps.
  func begin(_ daemon: @escaping @Sendable (ExploredRun) async throws -> Check) throws {
    try jobs.current {
      guard let check = complete({ try await daemon(self) }) else {
        throw ExplorationError("The set-up waits for something that never comes, or never ends.")
      }
      self.check.withLock { [check = try check.get()] in $0 = check }
      Task.detached { [self] in
        ended(await mock.core.run())
      }
    }
  }

  @inline(never) private func ended(_ exit: LifecycleExit) { self.exit.withLock { $0 = exit } }

  /// Makes steps until the daemon has ended, or rests for the first time. Returns the problem, if there is one.
  func go(_ explorer: Explorer, untilRest stopsAtRest: Bool = false) -> String? {
    jobs.current {
      while true {
        explorer.steps.add(1, ordering: .relaxed)
        let ready = jobs.count(of: mock.core)
        if ready == 0, mock.core.rest.isIdle {
          if let problem = problemAtRest() { return problem }
          if let exit = exit.withLock({ $0 }) {
            note("the daemon has ended with status \(exit.exitStatus)")
            return problemAtEnd()
          }
          if stopsAtRest { return nil }
        }
        if choices.withLock(\.step) > Self.mostSteps {
          return "After \(Self.mostSteps) steps there is still a job to run\(whileText)."
        }
        if !step(ready, explorer) { return "The daemon does not end\(whileText)." }
      }
    }
  }

  /// Makes one step. Returns false when there is nothing to do.
  private func step(_ ready: Int, _ explorer: Explorer) -> Bool {
    let core = mock.core
    let deadline = core.nextDeadline(until: .distantFuture)
    // Only a short sleep: a long one would take up a hook's time.
    let longest = core.now.advanced(by: explorer.longestEarlySleep)
    let (word, hasEvents, neverRests) = choices.withLock { choices in
      let sleeps = deadline.map { $0 <= longest && core.rest.wakeUp == $0 } ?? false
      let word = choices.next(ready: ready, sleeps: sleeps)
      // A daemon that always has something to do is ended at last.
      let neverRests = choices.step > Self.mostSteps / 4
      let rests = ready == 0 && core.rest.isIdle || neverRests
      // If nothing else can happen, an event need not wait for its step.
      let isNext = choices.isForRest && rests || ready == 0 && deadline == nil
      return (
        word ?? (isNext ? choices.nextEvent() : nil), !choices.events.isEmpty, neverRests
      )
    }
    if let word, let job = Int(word) {
      note("job \(job + 1) of \(ready) goes first")
      jobs.perform(job)
    } else if let word, word != "clock" {
      send(word, explorer)
    } else if word == nil, !hasEvents, !core.rest.isEnding, ready == 0 || neverRests {
      send(explorer.words.last!, explorer)
    } else if word == nil, ready > 0 {
      jobs.perform()
    } else if let deadline {
      if word != nil { note("a sleep ends while jobs are ready") }
      core.moveClock(to: deadline)
      core.timePassed()
    } else {
      return false
    }
    return true
  }

  private func send(_ word: String, _ explorer: Explorer) {
    note(word + whileText)
    explorer.coverage.withLock { [self] in
      _ = $0.situations[word, default: []].insert("\(mock.state)\(whileText)")
    }
    explorer.events[word]?(mock)
  }

  /// Runs an operation, and jobs in the order in which they become ready; `nil` if it does not complete.
  private func complete(
    _ operation: @escaping @Sendable () async throws -> Check
  ) -> Result<Check, any Error>? {
    let completed = Mutex<Result<Check, any Error>?>(nil)
    @inline(never) @Sendable func complete(_ result: Result<Check, any Error>) {
      completed.withLock { $0 = result }
    }
    Task.detached {
      do { complete(.success(try await operation())) } catch { complete(.failure(error)) }
    }
    var steps = 0
    while jobs.count(of: mock.core) > 0, steps < Self.mostSteps, completed.withLock({ $0 == nil }) {
      jobs.perform()
      steps += 1
    }
    return completed.withLock { $0 }
  }

  /// Ends the sleeps of the run, and performs jobs that this makes ready. The others are dropped.
  func end() {
    jobs.beginEnding()
    jobs.current {
      mock.core.close()
      for _ in 0..<1000 where jobs.count(of: mock.core) > 0 { jobs.perform() }
    }
    jobs.end()
  }

  // MARK: Judging it

  private func problemAtRest() -> String? {
    let check = check.withLock { $0 }
    switch complete({
      try await check()
      return check
    }) {
    case .success?: return nil
    case .failure(let error)?:
      note("the check throws")
      return "\(error)"
    case nil: return "The check waits for something that never comes."
    }
  }

  /// The hook that did not end in time, or that failed although no fake did.
  private func problemAtEnd() -> String? {
    let aFakeFailed = choices.withLock { $0.record.contains { $0.word == "fails" } }
    for report in mock.reports {
      for entry in report.problems {
        switch entry.outcome {
        case .completed, .skipped(.overtaken), .skipped(.earlierHookFailed): continue
        // An error that work throws after its cancellation has no effect.
        case .failed where aFakeFailed || entry.isLate: continue
        case .failed: return "\(entry) (\(report.cause))"
        default:
          return "\(entry) (\(report.cause)). It waits for what never comes, or for the real clock."
        }
      }
    }
    let error = exit.withLock { $0?.error }
    return aFakeFailed ? nil : error.map { "The daemon's work ended with an error: \($0)" }
  }

  /// ", while Orders is in its hook for ShouldSaveState (SIGHUP …)".
  private var whileText: String { mock.core.runningHook.map { ", while \($0)" } ?? "" }
}
