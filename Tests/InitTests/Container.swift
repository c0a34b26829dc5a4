// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// An init as process 1 of a container, with pollerd as its service. It ends with this object, or with this process.
final class Container {
  /// `Tests/Inits/inits hold`.
  private let holder: ChildProcess
  /// Process 1, as this side sees it.
  private let leader: String
  /// What the container sees as /var/log; it is there after its end, too.
  private let logs = FileManager.default.temporaryDirectory
    .appendingPathComponent("init-test-\(UUID().uuidString)")
  private let section: Guide.Section

  private static let script = Package.root + "/Tests/Inits/inits"

  /// - Parameters:
  ///   - config: pollerd's configuration.
  ///   - edit: Changes a definition of the guide's.
  init(
    _ kind: Init, config: String = "interval = 0.05",
    edit: (_ definition: String) -> String = { $0 }
  ) throws {
    var section = try Guide.section(of: kind)
    section.files = section.files.mapValues(edit)
    section.files["/etc/pollerd/pollerd.conf"] = config
    self.section = section
    try FileManager.default.createDirectory(at: logs, withIntermediateDirectories: true)
    // The service writes there as its own user.
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: logs.path)
    var steps = ["set -e", try Guide.preparation()]
    for (path, text) in section.files where path.hasPrefix("/") {
      steps.append(Self.writing(text, to: path))
    }
    steps += [kind.preparation, "echo installed", "exec \(try kind.command(section))"]
    holder = try ChildProcess(
      "/bin/bash", [Self.script, "hold", "sh", "-c", steps.joined(separator: "\n")],
      environment: Self.environment(with: ["PRODUCTS": Package.products, "LOGS": logs.path]),
      stderrToStdout: true)
    // The root folder may have to be made first.
    leader = String(try holder.expect("leader ", within: 300).dropFirst("leader ".count))
    try holder.expect("installed", within: 60)
  }

  deinit { try? FileManager.default.removeItem(at: logs) }

  /// What the script looks at, where it is set.
  private static func environment(with variables: [String: String]) -> [String: String] {
    let names = ["INITS_CACHE", "XDG_CACHE_HOME", "RUNTIME"]
    return ProcessInfo.processInfo.environment.filter { names.contains($0.key) }
      .merging(variables) { $1 }
  }

  private static func writing(_ text: String, to path: String) -> String {
    let mode = text.hasPrefix("#!") ? "755" : "644"
    return """
      mkdir -p "$(dirname '\(path)')"
      cat >'\(path)' <<'END OF FILE'
      \(text.hasSuffix("\n") ? String(text.dropLast()) : text)
      END OF FILE
      chmod \(mode) '\(path)'
      """
  }

  // MARK: Commands

  /// What a command has said and how it has ended.
  struct Output {
    var exit: ChildProcess.Exit
    var text: String
  }

  /// Runs a shell command beside the init.
  @discardableResult
  func run(_ command: String, within seconds: Double = 60) throws -> Output {
    // What it leaves running has nothing of ours open: we would wait for its end.
    let detached = """
      (exec 9>&-; eval "$0") >/tmp/said 2>&1
      status=$?
      cat /tmp/said
      exit $status
      """
    let process = try ChildProcess(
      "/bin/bash", [Self.script, "exec", leader, "sh", "-c", detached, command],
      environment: Self.environment(with: [:]), stderrToStdout: true)
    let exit = try process.wait(within: seconds)
    return Output(exit: exit, text: process.output.joined(separator: "\n"))
  }

  /// Runs the guide's command for something, which must succeed.
  func tell(
    _ what: String, file: StaticString = #filePath, line: UInt = #line
  ) throws {
    let command = try command(what)
    let output = try run(command)
    guard output.exit == .status(0) else {
      throw failure("\(command): \(output.exit): \(output.text)", file, line)
    }
  }

  /// Whether the guide has a command for something.
  func knows(_ what: String) -> Bool { section.commands[what] != nil }

  /// Whether the init has learnt that pollerd is ready.
  func isReady() throws -> Bool {
    // Some wait until it is.
    try run("timeout 2 sh -c '\(try command("ready"))'").exit == .status(0)
  }

  private func command(_ what: String) throws -> String {
    guard let command = section.commands[what] else {
      throw GuideError("The guide has no command with the comment \"\(what)\"")
    }
    return command
  }

  func write(_ text: String, to path: String) throws { try run(Self.writing(text, to: path)) }

  /// Stops pollerd, and with it process 1, and so everything in the container.
  func end() throws {
    // The command may be killed like the rest.
    try run(command("stop"))
    _ = try holder.wait(within: 60)
  }

  // MARK: What pollerd says

  /// The lines so far.
  func lines() -> [String] {
    let text = try? String(contentsOf: logs.appendingPathComponent("pollerd.log"), encoding: .utf8)
    return (text ?? "").split(whereSeparator: \.isNewline).map(String.init)
  }

  /// The numbers of the polls so far.
  func polls() -> [Int] {
    lines().filter { $0.hasPrefix("poll ") }.compactMap { Int($0.split(separator: " ")[1]) }
  }

  /// Waits for a line that begins so, for the `count`th time.
  func waitFor(
    _ prefix: String, count: Int = 1, file: StaticString = #filePath, line: UInt = #line
  ) throws {
    try waitUntil("there is \"\(prefix)\"", file: file, line: line) {
      lines().count { $0.hasPrefix(prefix) } >= count
    }
  }

  func waitForMorePolls(file: StaticString = #filePath, line: UInt = #line) throws {
    let last = polls().last ?? 0
    try waitUntil("there are more polls", file: file, line: line) { (polls().last ?? 0) > last }
  }

  func waitUntil(
    _ what: String, file: StaticString = #filePath, line: UInt = #line, _ isSo: () throws -> Bool
  ) throws {
    do { try eventually(what, within: 60, file: file, line: line, isSo) } catch {
      throw failure("\(error)", file, line)
    }
  }

  private func failure(_ what: String, _ file: StaticString, _ line: UInt) -> TestFailure {
    // Reads what is there.
    _ = try? holder.line(within: 0) { _ in false }
    let said = "\(what); pollerd said:\n\(lines().joined(separator: "\n"))"
    let console = "the init said:\n\(holder.output.joined(separator: "\n"))"
    return TestFailure("\(said)\n\(console)", file, line)
  }
}
