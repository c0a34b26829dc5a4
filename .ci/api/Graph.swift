// SPDX-License-Identifier: Apache-2.0
/// What this folder reads of a symbol graph.
struct Graph: Decodable {
  struct Module: Decodable { let name: String }
  struct Symbol: Decodable {
    struct Identifier: Decodable { let precise: String }
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Comment: Decodable {}
    struct Location: Decodable { let uri: String }
    struct Availability: Decodable {
      let isUnconditionallyDeprecated, isUnconditionallyUnavailable: Bool?
    }
    struct Extension: Decodable { let constraints: [Constraint]? }
    let identifier: Identifier
    let kind: Kind
    let pathComponents: [String]
    let declarationFragments: [Fragment]?
    let docComment: Comment?
    let location: Location?
    let availability: [Availability]?
    let swiftExtension: Extension?

    /// Not what a conformance to another module's protocol brings.
    var isOwn: Bool { !identifier.precise.contains("::SYNTHESIZED::") }
  }
  struct Constraint: Decodable { let kind, lhs, rhs: String }
  struct Relationship: Decodable {
    struct Origin: Decodable {}
    let kind, source, target: String
    let targetFallback: String?
    let swiftConstraints: [Constraint]?
    let sourceOrigin: Origin?
  }
  let module: Module
  var symbols: [Symbol]
  let relationships: [Relationship]
}
