// SPDX-License-Identifier: Apache-2.0
// Top-level symbols have a topic on their catalogue's landing page. Types with more than eight members have an extension
// file in their catalogue's folder Extensions, and where there is one, it lists every member.
//
// What implements a requirement of another module (`description`, `==`) needs a comment too: without one its page says
// "Inherited from". Only what the compiler makes, such as `init(rawValue:)` of an enumeration, has no place for one; it has
// a topic instead.
import Foundation

extension Graph {
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
