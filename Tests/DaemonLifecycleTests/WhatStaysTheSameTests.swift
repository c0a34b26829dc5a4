// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Foundation
import TestSupport
import Testing

@testable import DaemonLifecycle

/// The page of what is kept within 1.x names all that the sources have, and nothing else.
@Suite struct WhatStaysTheSameTests {
  private static let page = try! Package.read(
    "Sources/DaemonLifecycle/DaemonLifecycle.docc/WhatStaysTheSame.md")

  /// The words in backticks of a section, which match.
  private func words(of section: String, _ pattern: some RegexComponent) throws -> Set<String> {
    let begin = try #require(Self.page.firstRange(of: "### Kept within 1.x: \(section)\n"))
    let text = Self.page[begin.upperBound...].split(separator: "\n### ")[0]
    return Set(
      text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 && $0.element.wholeMatch(of: pattern) != nil }
        .map { String($0.element) })
  }

  /// What a pattern captures in the sources of some modules.
  private func found(_ pattern: String, in modules: String...) throws -> Set<String> {
    let pattern = try Regex(pattern)
    var found: Set<String> = []
    for module in modules {
      let files = FileManager.default.enumerator(atPath: "\(Package.root)/Sources/\(module)")
      while let file = files?.nextObject() as? String {
        if !file.hasSuffix(".swift") || file.contains(".docc/") { continue }
        for match in try Package.read("Sources/\(module)/\(file)").matches(of: pattern) {
          found.formUnion(match.output.dropFirst().compactMap { $0.substring.map(String.init) })
        }
      }
    }
    return found
  }

  @Test func journal() throws {
    #expect(
      try words(of: "the journal", /LIFECYCLE_\w+/)
        == found(#""(LIFECYCLE_[A-Z_]+)""#, in: "DaemonLifecycle", "DaemonSystemd"))
    let rows = LifecycleTransition.allCases.map(\.row)
    #expect(
      try words(of: "the journal", /[0-9a-f]{32}/)
        == found(#""([0-9a-f]{32})""#, in: "DaemonLifecycle", "DaemonSystemd"))
    for row in rows {
      let id = row.messageID.map { "`\(row.event)` | `\($0)`" } ?? "`\(row.event)`"
      #expect(Self.page.contains(id))
    }
    let outcomes: [LifecycleReport.Outcome] = [
      .failed(TestFailure("")), .abandoned(.running), .skipped(.overtaken),
    ]
    for word in outcomes.map(\.word) + ["timed-out", "overtaken"] {
      #expect(Self.page.contains("`\(word)`"))
    }
    for state in [LifecycleState.launching, .foreground, .background, .terminated] {
      #expect(Self.page.contains("`\(state)`"))
    }
    for reason in [BackgroundReason.operator, .sleep] {
      #expect(Self.page.contains("`\(reason.name)`"))
    }
  }

  @Test func signals() throws {
    let map = SignalMap.standard
    #expect(try words(of: "signals", /SIG\w+/) == Set(map.signals.map(\.description)))
    for signal in map.signals {
      let request = "\(try #require(map[signal]))".prefix { $0 != "(" }
      #expect(Self.page.contains("| `\(signal)` | \(request)"))
    }
  }

  @Test func environment() throws {
    let read = try found(
      #"(?:environment|self)\["([A-Z_0-9]+)"\]|(?:in|marker): "([A-Z_0-9]+)""#,
      in: "DaemonSystemd", "DaemonLifecycle")
    #expect(try words(of: "the environment", /[A-Z_0-9]{4,}/) == read)
  }

  /// The comment of `LifecycleExit` has the same, and `runAndExit` one of its own.
  @Test func exitStatuses() throws {
    let stated = try found(
      #"(?:/// \| |exitStatus \?\? )(\d+(?: \+ n)?)"#, in: "DaemonLifecycle/Reports",
      "DaemonLifecycle/API")
    #expect(try words(of: "exit statuses", /\d+( \+ n)?/) == stated)
  }
}
