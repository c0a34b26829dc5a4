// Names every public symbol without a doc comment, from symbol graphs, and fails if there is one:
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
}

var count = 0
var missing = 0
for path in CommandLine.arguments.dropFirst() {
  let data = try Data(contentsOf: URL(filePath: path))
  let graph = try JSONDecoder().decode(Graph.self, from: data)
  count += graph.symbols.count
  for symbol in graph.undocumented {
    missing += 1
    let place = symbol.location.map { "\($0.uri.dropFirst(7)):\($0.position.line + 1): " } ?? ""
    print("\(place)\(graph.module.name).\(symbol.pathComponents.joined(separator: "."))")
  }
}
if count == 0 || missing > 0 {
  print("\(missing) of \(count) public symbols have no doc comment")
  exit(1)
}
print("All \(count) public symbols are documented")
