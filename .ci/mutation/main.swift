// SPDX-License-Identifier: Apache-2.0
// Changes the sources in small ways, one at a time, and finds out whether the tests notice: see ../mutate, which starts it.
//
// All mutants of an area are compiled into one build, each behind a switch, so that one costs a run of the tests and no
// build. The originals are read in the current folder; the mutants are in a copy of it, SCRATCH/tree.
import Foundation

func fail(_ text: String) -> Never {
  FileHandle.standardError.write(Data("Mutation: \(text)\n".utf8))
  exit(2)
}

func say(_ text: String) {
  print(text)
  fflush(stdout)
}

// MARK: What is asked for

var arguments = CommandLine.arguments.dropFirst()
guard let scratch = arguments.popFirst() else { fail("It needs a scratch folder.") }
var sample = Int.max
var seed: UInt64 = 1
var retriesSurvivors = false
var areas: [Area] = []
while let word = arguments.popFirst() {
  switch word {
  case "--sample", "--seed":
    guard let number = arguments.popFirst().flatMap({ Int($0) }), number >= 0 else {
      fail("\(word) takes a number.")
    }
    if word == "--seed" { seed = UInt64(number) } else { sample = number }
  case "--survivors": retriesSurvivors = true
  default:
    guard let area = Area.all.first(where: { $0.name == word }) else {
      let names = Area.all.map(\.name).joined(separator: ", ")
      fail("There is no area \"\(word)\"; there are: \(names).")
    }
    areas.append(area)
  }
}
if areas.isEmpty { areas = Area.all }

// MARK: Finding mutants

func sourceFiles(of area: Area) throws -> [String] {
  try area.sources.flatMap { source -> [String] in
    let path = "Sources/\(area.module)/\(source)"
    guard source.isEmpty || source.hasSuffix("/") else { return [path] }
    return try FileManager.default.contentsOfDirectory(atPath: path)
      .filter { $0.hasSuffix(".swift") }.sorted().map { path + (source.isEmpty ? "/" : "") + $0 }
  }.map { $0.replacingOccurrences(of: "//", with: "/") }
}

let equivalents = try Equivalents(contentsOf: ".ci/mutation/equivalents")
let refusedPath = "\(scratch)/refused"
/// What did not compile earlier, so that it need not be found out again.
var refused = Set(
  ((try? String(contentsOfFile: refusedPath, encoding: .utf8)) ?? "").split(separator: "\n")
    .map(String.init))
/// Of all areas, whichever are run: so a mutant has its number, and what was built can be used again.
var files: [MutatedFile] = []
var nextNumber = 1
for area in Area.all {
  for path in try sourceFiles(of: area) {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    var mutants = MutantFinder.mutants(of: text, path, from: nextNumber)
    nextNumber += mutants.count
    mutants.removeAll { refused.contains($0.key) }
    files.append(MutatedFile(path: path, text: Array(text.utf8), mutants: mutants))
  }
}

// MARK: Building

/// Leaves a file alone that has the text already, so that it is not compiled again.
func write(_ text: [UInt8], _ path: String) throws {
  let url = URL(fileURLWithPath: "\(scratch)/tree/\(path)")
  let data = Data(text)
  if (try? Data(contentsOf: url)) != data { try data.write(to: url) }
}

func writeMutants() throws {
  for file in files { try write(file.instrumented, file.path) }
  for module in Set(Area.all.map(\.module)) {
    try write(Array(switches.utf8), "Sources/\(module)/MutantSwitches.swift")
  }
}

/// Takes out what the errors are about; false when that is nothing.
func removeCulprits(_ log: String) -> Bool {
  var wrong: Set<Int> = []
  for match in log.matches(of: #/(Sources\/[^:\n]+):(\d+):(\d+): error:/#) {
    guard let file = files.first(where: { $0.path == match.1 }), let line = Int(match.2),
      let column = Int(match.3)
    else { continue }
    wrong.formUnion(culprits(line, column, in: file))
  }
  for index in files.indices {
    for mutant in files[index].mutants where wrong.contains(mutant.number) {
      refused.insert(mutant.key)
    }
    files[index].mutants.removeAll { wrong.contains($0.number) }
  }
  return !wrong.isEmpty
}

let tree = Tree(
  folder: "\(scratch)/tree", build: "\(scratch)/build",
  testTargets: Array(Set(Area.all.flatMap(\.testTargets))).sorted())
while true {
  try writeMutants()
  guard let log = try tree.compile() else { break }
  guard removeCulprits(log) else { fail("The mutants do not compile:\n\(log.suffix(3000))") }
  try refused.sorted().joined(separator: "\n").write(
    toFile: refusedPath, atomically: true, encoding: .utf8)
  say("The compiler refuses \(refused.count) so far.")
}

// MARK: Running

let program = try tree.copyProgram()
/// Address space, since a mutant may ask for more and more: not what an ordinary test run takes.
var memory = rlimit(rlim_cur: 8 << 30, rlim_max: 8 << 30)
setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &memory)

func start(_ stage: Area.Stage, _ number: Int, limit: Duration) -> TestRun {
  var words = ["--testing-library", "swift-testing"]
  if let filter = stage.filter { words += ["--filter", filter] }
  if let skip = stage.skip { words += ["--skip", skip] }
  let variables = stage.environment.merging(["MUTANT": "\(number)"]) { $1 }
  return TestRun(program, words, variables, limit: limit)
}

/// How long a stage may take: several times what it takes with no mutant, as the machine has other work.
func timeLimit(of stage: Area.Stage) -> Duration {
  for attemptsLeft in (0..<(stage.isTimed ? 5 : 1)).reversed() {
    let began = ContinuousClock.now
    let run = start(stage, 0, limit: .seconds(600))
    var verdict: TestRun.Verdict?
    while verdict == nil { verdict = run.verdict(canRead: TestRun.wait([run])[0]) }
    let text = String(decoding: run.printed, as: UTF8.self)
    guard verdict == .passed, !text.contains("with 0 tests"), text.contains("Test run with") else {
      if attemptsLeft > 0 { continue }
      fail("Without a mutant the tests do not pass:\n\(text.suffix(3000))")
    }
    let time = ContinuousClock.now - began
    say("  \(stage.filter ?? "all tests"): \(time) without a mutant")
    return time * 4 + .seconds(5)
  }
  fail("A stage without attempts.")
}

struct Result {
  var killed = 0
  var timedOut = 0
  var survivors: [Mutant] = []
}

func run(_ area: Area, _ mutants: [Mutant]) -> Result {
  let limits = area.stages.map { timeLimit(of: $0) }
  var result = Result()
  var waiting = mutants.reversed().map { (mutant: $0, stage: 0, hasFailed: false) }
  var running: [(mutant: Mutant, stage: Int, hasFailed: Bool, run: TestRun)] = []
  var done = 0
  while !waiting.isEmpty || !running.isEmpty {
    while running.count < ProcessInfo.processInfo.activeProcessorCount,
      let (mutant, stage, hasFailed) = waiting.popLast()
    {
      running.append(
        (mutant, stage, hasFailed, start(area.stages[stage], mutant.number, limit: limits[stage])))
    }
    let ready = TestRun.wait(running.map(\.run))
    for index in running.indices.reversed() {
      guard let verdict = running[index].run.verdict(canRead: ready[index]) else { continue }
      let (mutant, stage, hasFailed, _) = running.remove(at: index)
      if verdict == .passed, stage + 1 < area.stages.count {
        waiting.append((mutant, stage + 1, false))
        continue
      }
      let mayBeLoad = verdict == .timedOut || verdict == .failed && area.stages[stage].isTimed
      if mayBeLoad, !hasFailed {
        waiting.append((mutant, stage, true))
        continue
      }
      switch verdict {
      case .passed:
        result.survivors.append(mutant)
        say("  \(mutant.description)")
      case .failed: result.killed += 1
      case .timedOut:
        result.killed += 1
        result.timedOut += 1
      }
      done += 1
      if done % 100 == 0 { say("  \(done) of \(mutants.count)") }
    }
  }
  return result
}

var isGood = true
for area in areas {
  let paths = Set(try sourceFiles(of: area))
  let all = files.filter { paths.contains($0.path) }.flatMap(\.mutants)
  let stale = equivalents.reasons.keys.filter { key in
    paths.contains { key.hasPrefix($0 + ":") } && !all.contains { $0.key == key }
  }
  let equal = all.filter { equivalents.reasons[$0.key] != nil }
  var tried = all.filter { equivalents.reasons[$0.key] == nil }
  let survivorsPath = "\(scratch)/\(area.name).survivors"
  if retriesSurvivors {
    let keys = Set(
      try String(contentsOfFile: survivorsPath, encoding: .utf8).split(separator: "\n")
        .map(String.init))
    tried.removeAll { !keys.contains($0.key) }
  }
  if sample < tried.count {
    var generator = SeededGenerator(seed: seed)
    tried = Array(tried.shuffled(using: &generator).prefix(sample))
  }
  say(
    "\(area.name): \(tried.count) of \(all.count) mutants, of which \(equal.count) are equivalent")
  let result = run(area, tried)
  try result.survivors.map { $0.key + "\n" }.joined().write(
    toFile: survivorsPath, atomically: true, encoding: .utf8)
  let percent = tried.isEmpty ? 100 : Double(result.killed * 1000 / tried.count) / 10
  say(
    "\(area.name): \(result.killed) of \(tried.count) killed (\(percent) %), \(result.timedOut) of them by the time limit; "
      + "\(result.survivors.count) survive")
  for key in stale.sorted() { say("No such mutant, though it is listed as equivalent: \(key)") }
  if percent < 95 || !stale.isEmpty { isGood = false }
}
exit(isGood ? 0 : 1)
