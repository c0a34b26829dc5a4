// SPDX-License-Identifier: Apache-2.0
// Compares the public API in symbol graphs with what was promised, and fails at a difference that breaks a program:
// swift .ci/api/compare.swift [--write] GRAPH.symbols.json…
//
// The API is a line for each symbol, requirement and conformance. 1.0.txt has those of the release, next.txt those that
// were added since. A line that is gone, or differs, is in `exceptions`, below a comment with the reason. So is a requirement
// that was added, and a case of an enumeration that is exhaustive: both break programs. A parameter that was added with a
// default breaks none; the new line is in next.txt. With --write, 1.0.txt becomes the API as it is.
import Foundation

struct Graph: Decodable {
  struct Module: Decodable { let name: String }
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Availability: Decodable {
      let isUnconditionallyDeprecated, isUnconditionallyUnavailable: Bool?
    }
    struct Extension: Decodable { let constraints: [Constraint]? }
    let identifier: Identifier
    let kind: Kind
    let pathComponents: [String]
    let declarationFragments: [Fragment]?
    let availability: [Availability]?
    let swiftExtension: Extension?
  }
  struct Constraint: Decodable { let kind, lhs, rhs: String }
  struct Relationship: Decodable {
    let kind, source, target: String
    let targetFallback: String?
    let swiftConstraints: [Constraint]?
  }
  let module: Module
  let symbols: [Symbol]
  let relationships: [Relationship]
}

/// What each type conforms to, and says nothing of its use.
let unsaid: Set = [
  "Swift.Copyable", "Swift.Escapable", "Swift.SendableMetatype", "Swift.BitwiseCopyable",
]

/// The conditions of an extension or a conformance.
func suffix(_ constraints: [Graph.Constraint]?) -> String {
  let all = (constraints ?? []).map { "\($0.lhs) \($0.kind) \($0.rhs)" }.sorted()
  return all.isEmpty ? "" : " if " + all.joined(separator: ", ")
}

func lines(of graph: Graph) -> [String] {
  // One with a default implementation breaks nobody.
  let defaults = Set(
    graph.relationships.filter { $0.kind == "defaultImplementationOf" }.map(\.target))
  let requirements = Set(graph.relationships.filter { $0.kind == "requirementOf" }.map(\.source))
    .subtracting(defaults)
  let own = graph.symbols.filter { !$0.identifier.precise.contains("::SYNTHESIZED::") }
  let names = Dictionary(
    own.map { ($0.identifier.precise, $0.pathComponents.joined(separator: ".")) },
    uniquingKeysWith: { a, _ in a })
  let symbols = own.filter { $0.kind.identifier != "swift.extension" }.map { symbol in
    let precise = symbol.identifier.precise
    let kind = requirements.contains(precise) ? "requirement" : symbol.kind.identifier.dropFirst(6)
    let deprecated =
      symbol.availability?.contains { $0.isUnconditionallyDeprecated == true } ?? false
    let text = (symbol.declarationFragments ?? []).map(\.spelling).joined()
    let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let type = symbol.pathComponents.dropLast().joined(separator: ".")
    let unavailable =
      symbol.availability?.contains { $0.isUnconditionallyUnavailable == true } ?? false
    let declaration =
      (deprecated ? "@deprecated " : "") + (unavailable ? "@unavailable " : "") + words
      + suffix(symbol.swiftExtension?.constraints)
    return [graph.module.name, String(kind), type, declaration].filter { !$0.isEmpty }
      .joined(separator: " ")
  }
  let conformances = graph.relationships.compactMap { relationship -> String? in
    guard relationship.kind == "conformsTo", let name = names[relationship.source] else {
      return nil
    }
    let target = names[relationship.target] ?? relationship.targetFallback ?? relationship.target
    let line = "\(graph.module.name) conformance \(name): \(target)"
    return unsaid.contains(target) ? nil : line + suffix(relationship.swiftConstraints)
  }
  return symbols + conformances
}

/// The parts before, in and after the parameter list; the parameters are split at the commas that no bracket encloses.
func parts(of line: String) -> (String, [String], String) {
  var (depth, begin) = (0, line.endIndex)
  var parameters: [String] = []
  for index in line.indices {
    switch line[index] {
    case "(", "[", "<":
      if depth == 0, line[index] == "(", parameters.isEmpty { begin = line.index(after: index) }
      depth += 1
    case ",":
      if depth == 1, begin <= index {
        (parameters, begin) = (parameters + [String(line[begin..<index])], line.index(after: index))
      }
    case ")", "]", ">":
      // Not an arrow's.
      if line[index] == ">", index > line.startIndex, line[line.index(before: index)] == "-" {
        continue
      }
      depth -= 1
      guard depth == 0, line[index] == ")", begin <= index else { continue }
      parameters.append(String(line[begin..<index]))
      let first = line.firstIndex(of: "(")!
      return (
        String(line[..<first]),
        parameters.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty },
        String(line[index...])
      )
    default: break
    }
  }
  return (line, [], "")
}

/// Whether a line is that of another which was deprecated, or has its parameters and more with defaults. Of a case such
/// parameters break each pattern.
func extends(_ new: String, _ old: String) -> Bool {
  // Its parentheses are no parameter list.
  let isolation = "nonisolated(nonsending) "
  if new.contains(" enum.case ") || new.contains(isolation) != old.contains(isolation) {
    return false
  }
  let new = new.replacingOccurrences(of: isolation, with: "")
    .replacingOccurrences(of: "@deprecated ", with: "")
  let old = old.replacingOccurrences(of: isolation, with: "")
  if new == old { return true }
  return hasMoreParameters(parts(of: new), parts(of: old))
}

func hasMoreParameters(
  _ new: (String, [String], String), _ old: (String, [String], String)
) -> Bool {
  guard new.0 == old.0, new.2 == old.2, new.1.count > old.1.count else { return false }
  var rest = old.1[...]
  for parameter in new.1 {
    if parameter == rest.first {
      rest.removeFirst()
    } else if !parameter.contains(" = ") {
      return false
    }
  }
  return rest.isEmpty
}

let folder = URL(filePath: #filePath).deletingLastPathComponent()
func read(_ name: String) -> Set<String> {
  let text = (try? String(contentsOf: folder.appending(path: name), encoding: .utf8)) ?? ""
  return Set(text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") })
}

var arguments = CommandLine.arguments.dropFirst()
let isWriting = arguments.first == "--write"
if isWriting { arguments = arguments.dropFirst() }
let now = Set(
  try arguments.flatMap { path in
    lines(of: try JSONDecoder().decode(Graph.self, from: Data(contentsOf: URL(filePath: path))))
  })
#if compiler(<6.3)
  print("Public API: not compared, since Swift before 6.3 writes declarations in another way")
  exit(0)
#endif
if isWriting {
  try (now.sorted().joined(separator: "\n") + "\n").write(
    to: folder.appending(path: "1.0.txt"), atomically: true, encoding: .utf8)
  exit(0)
}
let (promised, next, exceptions) = (read("1.0.txt"), read("next.txt"), read("exceptions"))
var complaints: [String] = []
func complain(_ problem: String, _ lines: some Sequence<String>) {
  complaints += lines.sorted().map { "\(problem):\n  \($0)" }
}
let gone = promised.union(next).subtracting(now)
let added = now.subtracting(promised)
complain(
  "Gone or changed, and not in .ci/api/exceptions",
  gone.filter { old in !exceptions.contains(old) && !added.contains { extends($0, old) } })
complain("Not in .ci/api/next.txt", added.subtracting(next))
/// The module and the name of the enumeration or protocol that a line declares.
func type(of line: String) -> String? {
  let words = line.split(separator: " ").filter { !$0.hasPrefix("@") && $0 != "indirect" }
  guard ["enum", "protocol"].contains(words[1]),
    let keyword = words[2...].firstIndex(of: words[1]), keyword + 1 < words.count
  else { return nil }
  return (words[..<1] + words[2..<keyword] + [words[keyword + 1]]).joined(separator: " ")
}
/// The same of the type whose case or requirement a line is.
func owner(of line: String) -> String {
  let words = line.split(separator: " ")
  return words[2].split(separator: ".").reduce(into: String(words[0])) { $0 += " " + $1 }
}
func types(_ lines: some Sequence<String>) -> Set<String> {
  Set(lines.compactMap { type(of: $0)?.replacingOccurrences(of: ".", with: " ") })
}
let exhaustive = types(now.filter { $0.contains(" enum ") && !$0.contains("@nonexhaustive") })
let newTypes = types(added)
complain(
  "It breaks programs, and is not in .ci/api/exceptions",
  added.filter { line in
    let breaks =
      line.contains(" requirement ")
      || line.contains(" enum.case ") && exhaustive.contains(owner(of: line))
    return breaks && !newTypes.contains(owner(of: line)) && !exceptions.contains(line)
  })
complain("No exception", exceptions.subtracting(gone).subtracting(added))
for complaint in complaints { print(complaint) }
if now.isEmpty || !complaints.isEmpty { exit(1) }
print("Public API: \(now.count) lines as promised, \(added.count) added since 1.0")
