// SPDX-License-Identifier: Apache-2.0
import Foundation

enum Verdict { case passed, failed, timedOut }

/// Runs the tests of a stage with a mutant (0: none), until one fails, all have ended or the time is over.
func runTests(
  _ program: String, _ stage: Area.Stage, mutant: Int, seconds: Int
) -> (verdict: Verdict, printed: String) {
  let folder = NSTemporaryDirectory() + "run-\(UUID().uuidString)"
  try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  // timeout(1) leads a process group.
  process.arguments = ["timeout", "--signal=KILL", "\(seconds)", program]
  process.arguments! += ["--testing-library", "swift-testing", "--filter", stage.filter]
  if let skip = stage.skip { process.arguments! += ["--skip", skip] }
  process.environment = ProcessInfo.processInfo.environment.merging(stage.environment) { $1 }
    // What prints the backtrace of a crash may outlive the crashed, and keep the pipe open for good.
    .merging(["TMPDIR": folder, "MUTANT": "\(mutant)", "SWIFT_BACKTRACE": "enable=no"]) { $1 }
  let pipe = Pipe()
  process.standardInput = FileHandle.nullDevice
  process.standardOutput = pipe
  process.standardError = pipe
  let began = ContinuousClock.now
  do { try process.run() } catch { fail("\(program) cannot be started: \(error)") }
  var printed = Data()
  var verdict: Verdict?
  while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty {
    printed += data
    let news = String(decoding: printed.suffix(data.count + 64), as: UTF8.self)
    guard news.contains("✘") || news.contains("recorded an issue") else { continue }
    verdict = .failed
    kill(-process.processIdentifier, SIGKILL)
  }
  process.waitUntilExit()
  kill(-process.processIdentifier, SIGKILL)
  unmountAll(below: folder)
  try? FileManager.default.removeItem(atPath: folder)
  if verdict == nil, .now - began >= .seconds(seconds) { verdict = .timedOut }
  return (
    verdict ?? (process.terminationStatus == 0 ? .passed : .failed),
    String(decoding: printed, as: UTF8.self)
  )
}

/// A test that was killed leaves the disks that it had mounted.
private func unmountAll(below folder: String) {
  let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
  for line in mounts.split(separator: "\n").reversed() {
    let words = line.split(separator: " ")
    if words.count > 1, words[1].hasPrefix(folder) { umount2(String(words[1]), Int32(MNT_DETACH)) }
  }
}
