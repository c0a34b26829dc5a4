// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// The choices of a run, step by step: random, or recorded ones. By default no event arrives, the job runs that has
/// been ready for longest, and nothing fails. Only other choices are recorded, so that a record can be shortened.
///
/// A choice is a word: that of an event, `+2` for a job that goes before two others, `clock` for a sleep that ends
/// although jobs are ready, `fails`. A record is text: `16:reload 2:fails 22:terminate`. The number is that of a step;
/// for a failure it counts the fakes' questions so far, and stays as it is when steps are left out.
struct Choices {
  /// The number of the current step.
  private(set) var step = 0
  /// The choices so far that differ from the default.
  private var made: [(step: Int, word: String)] = []
  /// How often there was more than one possibility.
  private(set) var count = 0
  /// The events still to come, soonest first. One of step `.max`, as in `rest:pause`, comes when the daemon rests.
  private(set) var events: [(step: Int, word: String)] = []
  var isForRest: Bool { events.first?.step == .max }
  /// The choices that repeat the run, with the events still to come: without these the clock would not move.
  var record: [(step: Int, word: String)] { made + events }
  private var others: [Int: String] = [:]
  private var failures: Set<Int> = []
  /// How often a fake has asked whether it fails.
  private var asked = 0
  private var random: SplitMix?
  /// The probabilities in this run that another job goes first, and that a fake fails.
  private var (otherJob, failure) = (0.0, 0.0)
  /// How many sleeps may still end early: together they are far shorter than a hook's time limit.
  private var earlySleeps = 3

  init(given: [(step: Int, word: String)] = []) {
    for (step, word) in given.sorted(by: { $0.step < $1.step }) {
      if Self.isEvent(word) {
        events.append((step, word))
      } else if word == "fails" {
        failures.insert(step)
      } else {
        others[step] = word
      }
    }
  }

  /// - Parameters:
  ///   - events: The words of the events; the last one ends the daemon.
  ///   - length: About how many steps the run has.
  init(seed: UInt64, events: [String], upTo count: Int, length: Int) {
    var random = SplitMix(seed: seed)
    var words = (0..<Int.random(in: 0...count, using: &random)).compactMap { _ in
      events.dropLast().randomElement(using: &random)
    }
    if Bool.random(using: &random) { words += events.suffix(1) }
    // Some are long, since the first run says little about how long something takes. The last event comes long before a
    // run counts as endless.
    let length = min(
      length << [0, 0, 1, 3].randomElement(using: &random)!, ExploredRun.mostSteps / 2)
    self.init(given: words.map { (Int.random(in: 1...length, using: &random), $0) })
    // In every other run jobs keep their order, which is easier to read.
    otherJob = seed.isMultiple(of: 2) ? 0 : [0.1, 0.5, 1].randomElement(using: &random)!
    failure = [0, 0.1, 0.5].randomElement(using: &random)!
    self.random = random
  }

  static func isEvent(_ word: String) -> Bool {
    word != "clock" && word != "fails" && Int(word) == nil
  }

  /// Chooses the next step; `nil` for the default.
  mutating func next(ready: Int, sleeps: Bool) -> String? {
    step += 1
    if ready > 1 { count += 1 }
    if let event = events.first, event.step <= step { return nextEvent() }
    if let word = others.removeValue(forKey: step) {
      let isPossible = word == "clock" ? sleeps : Int(word).map { 0..<ready ~= $0 } ?? false
      return isPossible ? make(word) : nil
    }
    if ready > 1, happens(otherJob) {
      let job = Int.random(in: 0..<ready, using: &random!)
      return job > 0 ? make("+\(job)") : nil
    }
    guard ready > 0, sleeps, earlySleeps > 0, happens(0.02) else { return nil }
    earlySleeps -= 1
    return make("clock")
  }

  /// The next event, early since nothing else is left to do.
  mutating func nextEvent() -> String? {
    events.isEmpty ? nil : make(events.removeFirst().word)
  }

  mutating func fails() -> Bool {
    asked += 1
    count += 1
    let fails = failures.contains(asked) || happens(failure)
    if fails { made.append((asked, "fails")) }
    return fails
  }

  private mutating func happens(_ probability: Double) -> Bool {
    random != nil && probability > 0 && Double.random(in: 0..<1, using: &random!) < probability
  }

  private mutating func make(_ word: String) -> String {
    made.append((step, word))
    return word
  }
}
