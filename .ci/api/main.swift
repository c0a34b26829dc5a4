// SPDX-License-Identifier: Apache-2.0
// Reads symbol graphs: .ci/symbols.
//
// Names every public symbol without a doc comment, every one that is under no topic, and every difference from the public API
// that was promised which breaks a program, and fails if there is one. Then it prints the counts of public symbols.
//
// The API is a line for each symbol, requirement and conformance. 1.0.txt has those of the release, next.txt those that
// were added since. A line that is gone, or differs, is in `exceptions`, below a comment with the reason. So is a requirement
// that was added, and a case of an enumeration that is exhaustive: both break programs. A parameter that was added with a
// default breaks none; the new line is in next.txt. With --write, 1.0.txt becomes the API as it is.
import Foundation

let folder = URL(filePath: #filePath).deletingLastPathComponent()
func read(_ name: String) -> Set<String> {
  let text = (try? String(contentsOf: folder.appending(path: name), encoding: .utf8)) ?? ""
  return Set(text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") })
}

var complaints: [String] = []

// MARK: Comments and topics

var counts: [String: Int] = [:]
func complain(_ symbol: Graph.Symbol, _ module: String, _ problem: String) {
  let place = symbol.location.map { "\($0.uri.dropFirst(7)): " } ?? ""
  complaints.append("\(place)\(module).\(symbol.pathComponents.joined(separator: ".")) \(problem)")
}
var now: Set<String> = []
let isWriting = CommandLine.arguments.dropFirst().first == "--write"
for path in CommandLine.arguments.dropFirst(isWriting ? 2 : 1) {
  let data = try Data(contentsOf: URL(filePath: path))
  var graph = try JSONDecoder().decode(Graph.self, from: data)
  // What the tool makes, so that pages can have what a module adds to another's type.
  graph.symbols.removeAll { $0.kind.identifier == "swift.extension" }
  now.formUnion(lines(of: graph))
  let name = graph.module.name
  for symbol in graph.undocumented { complain(symbol, name, "has no doc comment") }
  let own = graph.symbols.filter(\.isOwn)
  counts["symbols.\(name)", default: 0] += own.count
  counts["settings", default: 0] += own.count(where: \.isSetting)
  // MODULE@OTHER.symbols.json has what MODULE adds to another.
  if path.contains("@") { continue }
  for symbol in try graph.withoutTopic() { complain(symbol, name, "is under no topic") }
}

// MARK: The promised API

if isWriting {
  try (now.sorted().joined(separator: "\n") + "\n").write(
    to: folder.appending(path: "1.0.txt"), atomically: true, encoding: .utf8)
}
func complain(_ problem: String, _ lines: some Sequence<String>) {
  complaints += lines.sorted().map { "\(problem):\n  \($0)" }
}
func compare() {
  let (promised, next, exceptions) = (read("1.0.txt"), read("next.txt"), read("exceptions"))
  let gone = promised.union(next).subtracting(now)
  let added = now.subtracting(promised)
  complain(
    "Gone or changed, and not in .ci/api/exceptions",
    gone.filter { old in !exceptions.contains(old) && !added.contains { extends($0, old) } })
  complain("Not in .ci/api/next.txt", added.subtracting(next))
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
}
// Swift before 6.3 writes declarations in another way.
#if compiler(>=6.3)
  compare()
#endif

if now.isEmpty { complaints.append("There are no public symbols.") }
for complaint in complaints { print(complaint) }
if !complaints.isEmpty { exit(1) }
for (name, count) in counts.sorted(by: { $0.key < $1.key }) { print(name, count) }
