// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

/// A fenced block of a guide.
struct GuideBlock: Sendable, CustomTestStringConvertible {
  let language: String
  /// Its lines, without the indentation of a list.
  let lines: [String]
  /// The comment on the line before it: `run as a user`, or why it can't be run in a machine.
  let note: String?
  /// The line of the guide that it begins at.
  let number: Int

  var text: String { lines.joined(separator: "\n") + "\n" }
  var testDescription: String { "line \(number)" }

  func contains(_ words: String) -> Bool { text.contains(words) }
  var isForAUser: Bool { note == "run as a user" }
  var isRunElsewhere: Bool { note?.hasPrefix("not run ") == true }

  /// All of a file, in order.
  static func all(of path: String) throws -> [GuideBlock] {
    let lines = try Package.read(path).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    var blocks: [GuideBlock] = []
    var begin: Int?
    for (index, line) in lines.enumerated() {
      let content = line.drop { $0 == " " }
      guard content.hasPrefix("```") else { continue }
      guard let first = begin else {
        begin = index
        continue
      }
      let indentation = lines[first].prefix { $0 == " " }.count
      blocks.append(
        GuideBlock(
          language: String(lines[first].dropFirst(indentation + 3)),
          lines: lines[(first + 1)..<index].map { String($0.dropFirst(indentation)) },
          note: note(lines[first - 1]), number: first + 1))
      begin = nil
    }
    return blocks
  }

  private static func note(_ line: String) -> String? {
    guard line.hasPrefix("<!-- "), line.hasSuffix(" -->") else { return nil }
    return String(line.dropFirst(5).dropLast(4))
  }
}

extension MachineTest {
  /// Runs a text as pasted into a shell, of root or of the user ann; every command has to succeed.
  @discardableResult
  func paste(_ text: String, in folder: String, asUser: Bool = false) async throws -> String {
    let user = """
      id=$(id -u ann)
      runuser -u ann -- env HOME=/home/ann XDG_RUNTIME_DIR=/run/user/$id bash -ec "$1"
      """
    let said = try await shell(
      "set -e; cd \(folder); " + (asUser ? user : #"bash -ec "$1""#), text)
    #expect(said.status == 0, "\(text): \(said.stdout)\(said.stderr)")
    return said.stdout
  }

  /// Runs a block that operates a pollerd line by line, since a pause that is revoked at once would not be delivered.
  func operate(_ block: GuideBlock, _ pollerd: Service, in folder: String) async throws {
    let answers = [
      ("USR1", "save: SIGUSR1 from pid "), ("USR2", "foreground: SIGUSR2 from pid "),
      ("enable --now ", "poll "), ("systemctl reload ", "reload: SIGHUP from pid "),
      ("systemctl restart ", "started, pid "), ("systemctl start ", "poll "),
      ("systemctl stop ", "terminate: SIGTERM from pid "),
    ]
    var last: JournalEntry?
    for line in block.lines {
      let said = try await paste(line, in: folder)
      if let answer = answers.first(where: { line.contains($0.0) })?.1 {
        last = try await pollerd.waitForMessage(answer, after: last)
      }
      if line.contains("systemctl status") { #expect(said.contains("Status: \""), "\(said)") }
      if line.contains("--check-config") { #expect(said.hasSuffix(" is valid\n"), "\(said)") }
    }
  }
}
