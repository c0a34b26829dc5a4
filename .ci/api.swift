// SPDX-License-Identifier: Apache-2.0
// The public API as text, a line for each symbol and each conformance, and what has changed since the last release:
// swift .ci/api.swift [--update | --allow REASON] -- GRAPH.symbols.json…
//
// The last release is in .ci/public-api/MODULE.txt; .ci/public-api/allowed has what may differ. A change is breaking if
// a line is gone, or if a protocol that was there has a new requirement without a default, or an enumeration a new case. A
// type that is gone, or new, is one difference.
// What the standard library adds to a type, and what is unavailable, is left out; what is deprecated is not.
import Foundation

struct Graph: Decodable {
  struct Module: Decodable { let name: String }
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Availability: Decodable { let isUnconditionallyUnavailable: Bool? }
    let identifier: Identifier
    let kind: Kind
    let pathComponents: [String]
    let declarationFragments: [Fragment]?
    let availability: [Availability]?

    var path: String { pathComponents.joined(separator: ".") }
    var isUsable: Bool {
      !identifier.precise.contains("::SYNTHESIZED::")
        && availability?.contains { $0.isUnconditionallyUnavailable == true } != true
    }
  }
  struct Relationship: Decodable {
    let kind: String
    let source: String
    let target: String
    let targetFallback: String?
  }
  let module: Module
  let symbols: [Symbol]
  let relationships: [Relationship]
}

/// Conformances that the compiler adds to nearly every type.
let implicit: Set = ["Swift.Copyable", "Swift.Escapable", "Swift.SendableMetatype"]
let kinds = [
  "enum.case": "case", "func.op": "operator", "type.method": "static method",
  "type.property": "static property", "type.subscript": "static subscript",
]

/// One line of a module's text.
struct Line: Hashable {
  let path: String
  let kind: String
  let text: String

  init(path: String, kind: String, declaration: String) {
    self.path = path
    self.kind = kind
    text = "\(path) [\(kind)] \(declaration)"
  }

  /// As it is in the file.
  init?(_ text: String) {
    guard let open = text.range(of: " ["), let close = text[open.upperBound...].range(of: "] ")
    else { return nil }
    path = String(text[..<open.lowerBound])
    kind = String(text[open.upperBound..<close.lowerBound])
    self.text = text
  }

  /// The path of the type that it belongs to. An operator may have full stops in its name, a parameter has none.
  var parent: String? {
    path.prefix { $0 != "(" }.lastIndex(of: ".").map { String(path[..<$0]) }
  }

  var isType: Bool { ["actor", "class", "enum", "protocol", "struct"].contains(kind) }

  /// Whether it is a member or a conformance of one of these types.
  func isPart(of types: Set<String>) -> Bool {
    if !isType && types.contains(path) { return true }
    var outer = parent
    while let path = outer {
      if types.contains(path) { return true }
      outer = path.lastIndex(of: ".").map { String(path[..<$0]) }
    }
    return false
  }
}

struct Usage: Error, CustomStringConvertible {
  let description: String
}

// MARK: - The current API

/// The declaration on one line. A stored property reads like a computed one, since users can't tell them apart.
func declaration(of symbol: Graph.Symbol) -> String {
  var text = (symbol.declarationFragments ?? []).map(\.spelling).joined()
    .split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    .joined(separator: " ")
  guard symbol.kind.identifier.hasSuffix("property"), !text.hasSuffix("}") else { return text }
  let constant = text.range(of: #"(^| )let "#, options: .regularExpression)
  if let constant {
    text.replaceSubrange(constant, with: text[constant].replacing("let", with: "var"))
  }
  return text + (constant == nil ? " { get set }" : " { get }")
}

func lines(of graphs: [Graph]) -> [String: Set<Line>] {
  let names = Dictionary(
    graphs.flatMap(\.symbols).map { ($0.identifier.precise, $0.path) }, uniquingKeysWith: { $1 })
  let relationships = graphs.flatMap(\.relationships)
  let requirements = Set(
    relationships.filter { $0.kind == "requirementOf" || $0.kind == "optionalRequirementOf" }
      .map(\.source))
  let withDefault = Set(relationships.filter { $0.kind == "defaultImplementationOf" }.map(\.target))
  var found: [String: Set<Line>] = [:]
  for graph in graphs {
    var lines: Set<Line> = []
    for symbol in graph.symbols where symbol.isUsable {
      let name = symbol.kind.identifier.replacing("swift.", with: "", maxReplacements: 1)
      var kind = kinds[name] ?? name
      if requirements.subtracting(withDefault).contains(symbol.identifier.precise) {
        kind = "required \(kind)"
      }
      lines.insert(Line(path: symbol.path, kind: kind, declaration: declaration(of: symbol)))
    }
    for relationship in graph.relationships
    where ["conformsTo", "inheritsFrom"].contains(relationship.kind) {
      guard let source = names[relationship.source] else { continue }
      let target = names[relationship.target] ?? relationship.targetFallback ?? relationship.target
      if implicit.contains(target) { continue }
      lines.insert(Line(path: source, kind: "conformance", declaration: target))
    }
    found[graph.module.name, default: []].formUnion(lines)
  }
  return found
}

// MARK: - The API of the last release

let folder = URL(filePath: ".ci/public-api")
let listFile = folder.appending(path: "allowed")

func released() throws -> [String: Set<Line>] {
  var modules: [String: Set<Line>] = [:]
  for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
  where name.hasSuffix(".txt") {
    let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
    modules[String(name.dropLast(4))] = Set(
      text.split(separator: "\n").compactMap { Line(String($0)) })
  }
  return modules
}

let heading = """
  # What may differ from the last release's API, as .ci/api prints it; each below a line with the reason.
  # `.ci/api .build/debug --allow REASON` adds what is missing; `--update`, at a release, empties this list.

  """

func allowed() throws -> Set<String> {
  var reason: Substring?
  var entries: Set<String> = []
  for line in try String(contentsOf: listFile, encoding: .utf8).split(separator: "\n")
  where !line.hasPrefix("#") {
    if line.hasPrefix("because: ") {
      reason = line.dropFirst("because: ".count)
    } else if reason == nil {
      throw Usage(description: "\(listFile.relativePath): no reason above \"\(line)\"")
    } else {
      entries.insert(String(line))
    }
  }
  return entries
}

// MARK: - Differences

struct Difference {
  var breaking: [String] = []
  var added: [String] = []
}

/// Whether it is still there in a form that breaks nobody: a property that can be set now, a requirement that has a default.
func remains(_ line: Line, in lines: Set<Line>) -> Bool {
  let isRequired = line.kind.hasPrefix("required ")
  let form =
    isRequired
    ? line.text.replacing("[required ", with: "[")
    : line.text.replacing("{ get }", with: "{ get set }")
  return Line(form).map(lines.contains) == true
}

func compare(_ old: [String: Set<Line>], with new: [String: Set<Line>]) -> Difference {
  var difference = Difference()
  for module in Set(old.keys).union(new.keys).sorted() {
    let (before, after) = (old[module] ?? [], new[module] ?? [])
    let paths = Set(before.map(\.path))
    let types = Set(before.filter(\.isType).map(\.path))
    let newTypes = Set(after.filter(\.isType).map(\.path))
    // The line of a type stands for all of its members.
    let gone = before.subtracting(after).filter {
      !$0.isPart(of: types.subtracting(newTypes)) && !remains($0, in: after)
    }
    let new = after.subtracting(before).filter { !$0.isPart(of: newTypes.subtracting(types)) }
    // By symbol, the old line first.
    let changes = gone.map { ($0, "- ") } + new.map { ($0, "+ ") }
    for (line, sign) in changes.sorted(by: {
      ($0.0.path, $1.1, $0.0.text) < ($1.0.path, $0.1, $1.0.text)
    }) {
      let entry = "\(sign)\(module): \(line.text)"
      let breaks =
        sign == "- "
        || (line.kind == "case" || line.kind.hasPrefix("required "))
          && !paths.contains(line.path) && line.parent.map(paths.contains) == true
      if breaks { difference.breaking.append(entry) } else { difference.added.append(entry) }
    }
  }
  return difference
}

// MARK: - The command

func run() throws -> Int32 {
  let parts = CommandLine.arguments.dropFirst().split(
    separator: "--", maxSplits: 1, omittingEmptySubsequences: false)
  guard parts.count == 2, !parts[1].isEmpty else { throw Usage(description: "no symbol graphs") }
  let options = Array(parts[0])
  let today = try lines(
    of: parts[1].map {
      try JSONDecoder().decode(Graph.self, from: Data(contentsOf: URL(filePath: $0)))
    })

  if options == ["--update"] {
    for module in try released().keys where today[module] == nil {
      try FileManager.default.removeItem(at: folder.appending(path: "\(module).txt"))
    }
    for (module, lines) in today {
      let text = lines.map { $0.text + "\n" }.sorted().joined()
      try Data(text.utf8).write(to: folder.appending(path: "\(module).txt"))
    }
    try Data(heading.utf8).write(to: listFile)
    print("Public API: \(today.values.map(\.count).reduce(0, +)) lines are what to compare with")
    return 0
  }

  let difference = compare(try released(), with: today)
  let list = try allowed()
  let missing = difference.breaking.filter { !list.contains($0) }
  if options.first == "--allow" {
    guard options.count == 2, !options[1].isEmpty else { throw Usage(description: "no reason") }
    let text = try String(contentsOf: listFile, encoding: .utf8)
    let kept = text.split(separator: "\n", omittingEmptySubsequences: false).filter {
      !$0.hasPrefix("+ ") && !$0.hasPrefix("- ") || difference.breaking.contains(String($0))
    }.joined(separator: "\n")
    let block = "\nbecause: \(options[1])\n" + missing.map { $0 + "\n" }.joined()
    try Data((kept + (missing.isEmpty ? "" : block)).utf8).write(to: listFile)
    print("Public API: \(missing.count) differences are allowed now")
    return 0
  }
  guard options.isEmpty else { throw Usage(description: "unknown: \(options)") }

  if !difference.added.isEmpty { print("Added since the last release:") }
  for line in difference.added { print(line) }
  if !missing.isEmpty { print("Breaking, and not in \(listFile.relativePath):") }
  for line in missing { print(line) }
  let stale = list.subtracting(difference.breaking).sorted()
  if !stale.isEmpty { print("In \(listFile.relativePath), but not so any more:") }
  for line in stale { print(line) }
  print(
    "Public API: \(difference.added.count) added, \(difference.breaking.count - missing.count) breaking and allowed, "
      + "\(missing.count) breaking and not allowed")
  return missing.isEmpty && stale.isEmpty ? 0 : 1
}

do { exit(try run()) } catch {
  print("Public API: \(error)")
  exit(2)
}
