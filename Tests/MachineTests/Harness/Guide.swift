// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

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
    #expect(said.isSuccess, "\(text): \(said.text)")
    return said.text
  }

  /// Runs a block that operates a pollerd line by line, since a pause that is revoked at once would not be delivered.
  func operate(_ block: GuideBlock, _ pollerd: Service, in folder: String) async throws {
    let answers = [
      ("USR1", "Entered the background in "), ("USR2", "Entered the foreground in "),
      ("enable --now ", "poll "), ("systemctl reload ", "Reloaded in "),
      ("systemctl restart ", "started, pid "), ("systemctl start ", "poll "),
      ("systemctl stop ", "terminate (SIGTERM from pid "),
    ]
    var last: JournalEntry?
    for line in block.lines {
      let said = try await paste(line, in: folder)
      if let answer = answers.first(where: { line.contains($0.0) })?.1 {
        last = try await pollerd.waitForMessage(answer, after: last)
      }
      if line.contains("systemctl status") { #expect(said.contains("Status: \""), "\(said)") }
      if line.contains("--check-config") { #expect(said.hasSuffix(" is valid"), "\(said)") }
    }
  }
}
