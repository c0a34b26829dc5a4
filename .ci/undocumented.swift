// SPDX-License-Identifier: Apache-2.0
// Names every public symbol without a doc comment, and every top-level one that is under no topic of its catalogue's
// landing page, from symbol graphs; fails if there is one:
// swift .ci/undocumented.swift GRAPH.symbols.json…
//
// Not asked for: what a protocol of elsewhere already documents (`description`, `==`, `hash(into:)`, `context`), and
// what the compiler has made. Both have an origin in the graph.
import Foundation

struct Graph: Decodable {
  struct Module: Decodable { let name: String }
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Comment: Decodable {
      struct Line: Decodable { let text: String }
      let lines: [Line]
      var isEmpty: Bool { !lines.contains { $0.text.contains { !$0.isWhitespace } } }
    }
    struct Location: Decodable {
      struct Position: Decodable { let line: Int }
      let uri: String
      let position: Position
    }
    let identifier: Identifier
    let pathComponents: [String]
    let docComment: Comment?
    let location: Location?
  }
  struct Relationship: Decodable {
    struct Origin: Decodable {}
    let source: String
    let sourceOrigin: Origin?
  }
  let module: Module
  let symbols: [Symbol]
  let relationships: [Relationship]

  var undocumented: [Symbol] {
    let elsewhere = Set(relationships.filter { $0.sourceOrigin != nil }.map(\.source))
    return symbols.filter {
      $0.docComment?.isEmpty ?? true && !elsewhere.contains($0.identifier.precise)
    }
  }

  /// The types of the module itself that its landing page does not list.
  func withoutTopic() throws -> [Symbol] {
    let name = module.name
    let page = try String(
      contentsOfFile: "Sources/\(name)/\(name).docc/\(name).md", encoding: .utf8)
    return symbols.filter {
      $0.pathComponents.count == 1 && !page.contains("- ``\($0.pathComponents[0])``")
    }
  }
}

var count = 0
var missing = 0
func complain(_ symbol: Graph.Symbol, _ module: String, _ problem: String) {
  missing += 1
  let place = symbol.location.map { "\($0.uri.dropFirst(7)):\($0.position.line + 1): " } ?? ""
  print("\(place)\(module).\(symbol.pathComponents.joined(separator: ".")) \(problem)")
}
for path in CommandLine.arguments.dropFirst() {
  let data = try Data(contentsOf: URL(filePath: path))
  let graph = try JSONDecoder().decode(Graph.self, from: data)
  count += graph.symbols.count
  let name = graph.module.name
  for symbol in graph.undocumented { complain(symbol, name, "has no doc comment") }
  // MODULE@OTHER.symbols.json has what MODULE adds to another.
  if path.contains("@") { continue }
  for symbol in try graph.withoutTopic() { complain(symbol, name, "is under no topic") }
}
if count == 0 || missing > 0 {
  print("\(missing) complaints about \(count) public symbols")
  exit(1)
}
print("All \(count) public symbols are documented, and all types are under a topic")
