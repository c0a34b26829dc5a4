// SPDX-License-Identifier: Apache-2.0
// Reads symbol graphs: names every public symbol without a doc comment, and every one that is under no topic, and fails
// if there is one; then prints the counts of public symbols: swift .ci/symbols.swift GRAPH.symbols.json…
//
// Top-level symbols have a topic on their catalogue's landing page. Types with more than eight members have an extension
// file in their catalogue's folder Extensions, and where there is one, it lists every member.
//
// What implements a requirement of another module (`description`, `==`) needs a comment too: without one its page says
// "Inherited from". Only what the compiler makes, such as `init(rawValue:)` of an enumeration, has no place for one; it has
// a topic instead.
import Foundation

struct Graph: Decodable {
  struct Module: Decodable { let name: String }
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Comment: Decodable {}
    struct Location: Decodable { let uri: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    let identifier: Identifier
    let kind: Kind
    let declarationFragments: [Fragment]?
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
  var symbols: [Symbol]
  let relationships: [Relationship]

  var undocumented: [Symbol] {
    // The compiler's have an origin, and no place in the sources.
    let elsewhere = Set(relationships.filter { $0.sourceOrigin != nil }.map(\.source))
    return symbols.filter {
      $0.docComment == nil && !($0.location == nil && elsewhere.contains($0.identifier.precise))
    }
  }

  /// The types of the module itself that its landing page does not list, and the members that their type's extension file
  /// does not list.
  func withoutTopic() throws -> [Symbol] {
    let catalogue = "Sources/\(module.name)/\(module.name).docc"
    let landing = try String(contentsOfFile: "\(catalogue)/\(module.name).md", encoding: .utf8)
    let members = Dictionary(grouping: symbols) { $0.pathComponents.dropLast() }
    return members.flatMap { type, members in
      if type.isEmpty { return members.filter { !$0.isListed(on: landing) } }
      let file = "\(catalogue)/Extensions/\(type.joined(separator: "+")).md"
      if let page = try? String(contentsOfFile: file, encoding: .utf8) {
        return members.filter { !$0.isListed(on: page) }
      }
      return members.count > 8 ? members : []
    }
  }
}

extension Graph.Symbol {
  /// A stored property of a configuration.
  var isSetting: Bool {
    pathComponents[0] == "LifecycleConfiguration"
      && pathComponents.count == 2 && kind.identifier == "swift.property"
      && declarationFragments?.contains { $0.spelling.contains("{") } != true
  }

  /// A link may end in what tells overloads apart.
  func isListed(on page: String) -> Bool {
    page.contains("- ``\(pathComponents.last!)``") || page.contains("- ``\(pathComponents.last!)-")
  }
}

var count = 0
var missing = 0
var counts: [String: Int] = [:]
func complain(_ symbol: Graph.Symbol, _ module: String, _ problem: String) {
  missing += 1
  let place = symbol.location.map { "\($0.uri.dropFirst(7)): " } ?? ""
  print("\(place)\(module).\(symbol.pathComponents.joined(separator: ".")) \(problem)")
}
for path in CommandLine.arguments.dropFirst() {
  let data = try Data(contentsOf: URL(filePath: path))
  var graph = try JSONDecoder().decode(Graph.self, from: data)
  // What the tool makes, so that pages can have what a module adds to another's type.
  graph.symbols.removeAll { $0.kind.identifier == "swift.extension" }
  count += graph.symbols.count
  let name = graph.module.name
  for symbol in graph.undocumented { complain(symbol, name, "has no doc comment") }
  // Without what a conformance to another module's protocol brings.
  let own = graph.symbols.filter { !$0.identifier.precise.contains("::SYNTHESIZED::") }
  counts["symbols.\(name)", default: 0] += own.count
  counts["settings", default: 0] += own.count(where: \.isSetting)
  // MODULE@OTHER.symbols.json has what MODULE adds to another.
  if path.contains("@") { continue }
  for symbol in try graph.withoutTopic() { complain(symbol, name, "is under no topic") }
}
if count == 0 || missing > 0 {
  print("\(missing) complaints about \(count) public symbols")
  exit(1)
}
for (name, count) in counts.sorted(by: { $0.key < $1.key }) { print(name, count) }
