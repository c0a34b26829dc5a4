// SPDX-License-Identifier: Apache-2.0
// Started by ../mutate. All mutants of all areas are compiled into one build, each behind a switch, so that one costs a run
// of the tests and no build. The originals are read in the current folder; the mutants are in a copy of it, SCRATCH/tree.
import Foundation

func fail(_ text: String) -> Never {
  FileHandle.standardError.write(Data("Mutation: \(text)\n".utf8))
  exit(2)
}

func say(_ text: String) {
  print(text)
  fflush(stdout)
}

/// The lines of a file; none if there is no such file.
func lines(of path: String) -> [Substring] {
  ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n")
}

// MARK: What is asked for

var arguments = CommandLine.arguments.dropFirst()
guard let scratch = arguments.popFirst() else { fail("It needs a scratch folder.") }
var sample = Int.max
var retriesSurvivors = false
var areas: [Area] = []
while let word = arguments.popFirst() {
  switch word {
  case "--sample":
    guard let number = arguments.popFirst().flatMap({ Int($0) }), number >= 0 else {
      fail("\(word) takes a number.")
    }
    sample = number
  case "--survivors": retriesSurvivors = true
  default:
    guard let area = Area.all.first(where: { $0.name == word }) else {
      fail("There is no area \"\(word)\"; there are: \(Area.all.map(\.name)).")
    }
    areas.append(area)
  }
}
if areas.isEmpty { areas = Area.all }

// MARK: Finding mutants

/// Mutants that behave as the original does. They are recognised by their text, not by their line's number; the reason
/// is in indented lines below.
let equivalents = Set(
  lines(of: ".ci/mutation/equivalents").filter { !$0.hasPrefix("#") && !$0.hasPrefix(" ") }
    .map(String.init))
let refusedPath = "\(scratch)/refused"
/// What did not compile earlier, so that it need not be found out again.
var refused = Set(lines(of: refusedPath).map(String.init))
/// Of all areas, whichever are run: so a mutant has its number, and what was built can be used again.
var files: [MutatedFile] = []
for path in try Area.all.flatMap({ try $0.files() }) {
  let text = try String(contentsOfFile: path, encoding: .utf8)
  let next = (files.last { !$0.mutants.isEmpty }?.mutants.last?.number ?? 0) + 1
  let mutants = MutantFinder.mutants(of: text, path, from: next)
  files.append(MutatedFile(path: path, text: Array(text.utf8), mutants: mutants))
}
let stale = equivalents.subtracting(files.flatMap(\.mutants).map(\.key)).sorted()
if !stale.isEmpty {
  fail("No such mutants, though listed as equivalent:\n\(stale.joined(separator: "\n"))")
}
for index in files.indices {
  files[index].mutants.removeAll { refused.contains($0.key) }
}

// MARK: Building

/// Leaves a file alone that has the text already, so that it is not compiled again.
func write(_ text: [UInt8], _ path: String) throws {
  let url = URL(fileURLWithPath: "\(scratch)/tree/\(path)")
  if (try? Data(contentsOf: url)) != Data(text) { try Data(text).write(to: url) }
}

/// Builds the tests with all mutants; what the compiler had to say if that failed.
func build() throws -> String? {
  for file in files { try write(file.instrumented, file.path) }
  for module in Area.modules {
    try write(Array(switches.utf8), "Sources/\(module)/MutantSwitches.swift")
  }
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = [
    "TEST_TARGETS=\(Area.testTargets)", "swift", "build", "--build-tests", "--package-path",
    "\(scratch)/tree", "-c", "release", "-Xswiftc", "-enable-testing", "--scratch-path",
    "\(scratch)/build",
  ]
  let pipe = Pipe()
  process.standardOutput = pipe
  process.standardError = pipe
  try process.run()
  let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  return process.terminationStatus == 0 ? nil : text
}

/// Takes out what the errors are about; false when that is nothing.
func removeCulprits(_ log: String) -> Bool {
  var wrong: Set<Int> = []
  for match in log.matches(of: #/(Sources\/[^:\n]+):(\d+):(\d+): error:/#) {
    guard let file = files.first(where: { $0.path == match.1 }), let line = Int(match.2),
      let column = Int(match.3)
    else { continue }
    wrong.formUnion(file.culprits(line, column))
  }
  for index in files.indices {
    refused.formUnion(files[index].mutants.filter { wrong.contains($0.number) }.map(\.key))
    files[index].mutants.removeAll { wrong.contains($0.number) }
  }
  return !wrong.isEmpty
}

while let log = try build() {
  guard removeCulprits(log) else { fail("The mutants do not compile:\n\(log.suffix(3000))") }
  try refused.sorted().joined(separator: "\n").write(
    toFile: refusedPath, atomically: true, encoding: .utf8)
  say("The compiler refuses \(refused.count) so far.")
}

// MARK: Running

let program = "\(scratch)/build/release/DaemonLifecyclePackageTests.xctest"
/// Address space, since a mutant may ask for more and more: not what an ordinary test run takes.
var memory = rlimit(rlim_cur: 8 << 30, rlim_max: 8 << 30)
setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &memory)

/// How many seconds a stage may take: several times what it takes with no mutant, as the machine has other work.
func timeLimit(of stage: Area.Stage) -> Int {
  var printed = ""
  for _ in 0..<(stage.isTimed ? 5 : 1) {
    let began = ContinuousClock.now
    let run = runTests(program, stage, mutant: 0, seconds: 600)
    printed = run.printed
    guard run.verdict == .passed, !printed.contains("with 0 tests"),
      printed.contains("Test run with")
    else { continue }
    let time = (ContinuousClock.now - began).components.seconds
    say("  \(stage.filter): \(time) s without a mutant")
    return Int(time) * 4 + 9
  }
  fail("Without a mutant the tests do not pass:\n\(printed.suffix(3000))")
}

/// What the stages, one after another, say of a mutant.
func verdict(on mutant: Mutant, _ stages: [(Area.Stage, limit: Int)]) -> Verdict {
  for (stage, limit) in stages {
    var verdict = runTests(program, stage, mutant: mutant.number, seconds: limit).verdict
    // It may be the machine's other work.
    if verdict == .timedOut || verdict == .failed && stage.isTimed {
      verdict = runTests(program, stage, mutant: mutant.number, seconds: limit).verdict
    }
    if verdict != .passed { return verdict }
  }
  return .passed
}

func verdicts(on mutants: [Mutant], _ area: Area) -> [(mutant: Mutant, verdict: Verdict)] {
  let stages = area.stages.map { ($0, limit: timeLimit(of: $0)) }
  // Both guarded by the lock.
  let lock = NSLock()
  var waiting = Array(mutants.reversed())
  var judged: [(mutant: Mutant, verdict: Verdict)] = []
  DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) { _ in
    while let mutant = lock.withLock({ waiting.popLast() }) {
      let verdict = verdict(on: mutant, stages)
      lock.withLock {
        judged.append((mutant, verdict))
        if verdict == .passed { say("  \(mutant.description)") }
        if judged.count % 100 == 0 { say("  \(judged.count) of \(mutants.count)") }
      }
    }
  }
  return judged
}

var isGood = true
for area in areas {
  let paths = try area.files()
  let all = files.filter { paths.contains($0.path) }.flatMap(\.mutants)
  var tried = all.filter { !equivalents.contains($0.key) }
  let equal = all.count - tried.count
  let survivorsPath = "\(scratch)/\(area.name).survivors"
  if retriesSurvivors {
    let keys = Set(lines(of: survivorsPath).map(String.init))
    tried.removeAll { !keys.contains($0.key) }
  }
  if sample < tried.count {
    // Always the same ones.
    var generator = SeededGenerator(seed: 1)
    tried = Array(tried.shuffled(using: &generator).prefix(sample))
  }
  say("\(area.name): \(tried.count) of \(all.count) mutants, of which \(equal) are equivalent")
  let judged = verdicts(on: tried, area)
  let survivors = judged.filter { $0.verdict == .passed }.map(\.mutant.key)
  try survivors.map { $0 + "\n" }.joined().write(
    toFile: survivorsPath, atomically: true, encoding: .utf8)
  let killed = tried.count - survivors.count
  let percent = tried.isEmpty ? 100 : Double(killed * 1000 / tried.count) / 10
  let timedOut = judged.count { $0.verdict == .timedOut }
  say(
    "\(area.name): \(killed) of \(tried.count) killed (\(percent) %), "
      + "\(timedOut) of them by the time limit; \(survivors.count) survive")
  if percent < 95 { isGood = false }
}
exit(isGood ? 0 : 1)
