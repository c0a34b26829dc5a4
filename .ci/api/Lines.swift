// SPDX-License-Identifier: Apache-2.0
import Foundation

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
  let own = graph.symbols.filter(\.isOwn)
  let names = Dictionary(
    own.map { ($0.identifier.precise, $0.pathComponents.joined(separator: ".")) },
    uniquingKeysWith: { a, _ in a })
  let symbols = own.map { symbol in
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
