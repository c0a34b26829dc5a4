// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The copy of the package in which the mutants are.
struct Tree {
  let folder: String
  let build: String
  let testTargets: [String]

  private var options: [String] {
    [
      "--package-path", folder, "-c", "release", "-Xswiftc", "-enable-testing", "--scratch-path",
      build,
    ]
  }

  /// The test program, copied with the programs that it starts, so that a build meanwhile disturbs no run.
  func copyProgram() throws -> String {
    let copies = NSTemporaryDirectory() + "programs"
    try? FileManager.default.removeItem(atPath: copies)
    try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: true)
    let release = "\(build)/release"
    for name in try FileManager.default.contentsOfDirectory(atPath: release) {
      var status = stat()
      let isProgram =
        stat("\(release)/\(name)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        && status.st_mode & S_IXUSR != 0
      guard isProgram else { continue }
      try FileManager.default.copyItem(atPath: "\(release)/\(name)", toPath: "\(copies)/\(name)")
    }
    return "\(copies)/DaemonLifecyclePackageTests.xctest"
  }

  /// Builds the tests; what the compiler had to say if that failed.
  func compile() throws -> String? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["swift", "build", "--build-tests"] + options
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["TEST_TARGETS": testTargets.joined(separator: ",")]) { $1 }
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return process.terminationStatus == 0 ? nil : text
  }
}

/// The mutants that an error of the compiler is about: the last switch before it on its line, else all on the line, else
/// what is dropped or left early in the declaration around it.
func culprits(_ line: Int, _ column: Int, in file: MutatedFile) -> Set<Int> {
  let lines = file.instrumented.split(separator: 0x0a, omittingEmptySubsequences: false)
  guard line <= lines.count else { return [] }
  let text = lines[line - 1]
  var found: [(number: Int, offset: Int)] = []
  let known = Set(file.mutants.map(\.number))
  let string = String(decoding: text, as: UTF8.self)
  for match in string.matches(of: #/mutant[A-Za-z]+\((\d+)/#) {
    let offset = string.utf8.distance(from: string.startIndex, to: match.range.lowerBound)
    if let number = Int(match.1), known.contains(number) { found.append((number, offset)) }
  }
  if let last = found.last(where: { $0.offset < column }) { return [last.number] }
  if !found.isEmpty { return Set(found.map(\.number)) }
  let before = file.text.split(separator: 0x0a, omittingEmptySubsequences: false).prefix(line - 1)
  let offset = before.reduce(0) { $0 + $1.count + 1 }
  let around = file.mutants.filter {
    $0.declaration.lowerBound <= offset && offset <= $0.declaration.upperBound + 1
      && ($0.change.hasPrefix("drop") || $0.change.hasPrefix("return"))
  }
  return Set(around.map(\.number))
}
