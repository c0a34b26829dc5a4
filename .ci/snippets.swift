// SPDX-License-Identifier: Apache-2.0
// Writes each Swift example of documents and doc comments into a file of its own, ready to be compiled:
// swift .ci/snippets.swift FOLDER FILE.md… FILE.swift…
//
// An example is a block fenced as `swift`. In doc comments, indented code and fences without a language are refused, since
// neither is highlighted. One without imports gets those of all products, the C library and Testing, and, in what belongs
// to the Foundation product, Foundation, to the Codable one FoundationEssentials. What are not declarations become the
// body of a function. Names that the text takes for granted are in `given.swift`. An ellipsis stands for code that is left
// out, and is dropped.
//
// A comment that readers don't see, on the line before a block, says what else holds for it:
//
//     <!-- swift: continues -->            it needs what the document's block before it declares
//     <!-- swift: module mydaemon -->      later blocks import it
//     <!-- swift: peers -->                it needs other packages: .ci/peers compiles it, with all others of this kind
//     <!-- swift: peers name -->           the same; its statements are the body of a function of this name, for
//                                          Tests/Peers to call; with `@main` it is a program of this name
//     <!-- swift: not compiled, since … --> somebody else's API
import Foundation

struct Line {
  let number: Int
  let text: String
}

struct Block {
  let file: String
  var lines: [Line]
  /// What the comment before it says.
  let note: String

  var words: [String] { note.split(separator: " ").map(String.init) }
  var needsPeers: Bool { words.first == "peers" }
  var isManifest: Bool { lines.first?.text.hasPrefix("// swift-tools-version") ?? false }
  var name: String {
    let stem = file.split(separator: "/").joined(separator: ".")
    return "\(stem.replacing(".docc", with: "")).\(lines[0].number)"
  }
}

// MARK: - Finding them

/// The lines with what is Markdown in them; the others are nil.
func markdown(_ path: String) throws -> [(Line, isComment: Bool)?] {
  let lines = try String(contentsOfFile: path, encoding: .utf8).split(
    separator: "\n", omittingEmptySubsequences: false)
  return lines.enumerated().map { index, line in
    guard path.hasSuffix(".swift") else {
      return (Line(number: index + 1, text: String(line)), false)
    }
    let content = line.drop { $0 == " " }
    guard content.hasPrefix("///") else { return nil }
    let text = content.dropFirst(3)
    return (
      Line(number: index + 1, text: String(text.hasPrefix(" ") ? text.dropFirst() : text)), true
    )
  }
}

func blocks(in path: String) throws -> [Block] {
  var found: [Block] = []
  var open: Block?
  /// The language of the fence that is open, and how far it is indented.
  var fence: (language: Substring, indent: Int)?
  var lastText = ""
  func close() {
    if let block = open, !block.lines.isEmpty { found.append(block) }
    open = nil
  }

  for item in try markdown(path) {
    guard let (line, isComment) = item else {
      close()
      (fence, lastText) = (nil, "")
      continue
    }
    let content = line.text.drop { $0 == " " }
    if content.hasPrefix("```") {
      close()
      fence = fence == nil ? (content.dropFirst(3), line.text.count - content.count) : nil
      if let fence, fence.language.isEmpty, isComment {
        refuse(line, of: path, "a fence without a language")
      }
      if fence?.language == "swift" { open = Block(file: path, lines: [], note: note(lastText)) }
      lastText = ""
    } else if let fence {
      open?.lines.append(Line(number: line.number, text: String(line.text.dropFirst(fence.indent))))
    } else {
      // After a blank line that is code to Markdown.
      let isIndented = line.text.hasPrefix("    ") && (lastText.isEmpty || !note(lastText).isEmpty)
      if isComment, isIndented { refuse(line, of: path, "indented code: fence it as ```swift") }
      if !content.isEmpty || note(lastText).isEmpty { lastText = String(content) }
    }
  }
  close()
  return found
}

func refuse(_ line: Line, of path: String, _ problem: String) {
  print("\(path):\(line.number): \(problem)")
  isRefused = true
}

func note(_ text: String) -> String {
  guard text.hasPrefix("<!-- swift: "), text.hasSuffix("-->") else { return "" }
  return text.dropFirst(12).dropLast(3).trimmingCharacters(in: .whitespaces)
}

// MARK: - Making files of them

enum Kind { case importing, type, function, statement }

func withoutAttributes(_ line: String) -> String {
  line.replacing(#/@\w+(\([^)]*\))? ?/#, with: "")
}

func kind(of line: String) -> Kind {
  for word in withoutAttributes(line).split(whereSeparator: { !$0.isLetter }) {
    switch word {
    case "public", "private", "final", "nonisolated", "indirect", "package", "internal": continue
    case "import": return .importing
    case "struct", "class", "actor", "enum", "protocol", "extension", "typealias": return .type
    case "func": return .function
    default: return .statement
    }
  }
  return .statement
}

/// A piece begins at each line that is not indented and goes on with nothing; comments and attributes belong to what
/// follows.
func pieces(_ lines: [Line]) -> [(kind: Kind, lines: [Line])] {
  var result: [(kind: Kind, lines: [Line])] = []
  var waiting: [Line] = []
  for line in lines {
    let isInside =
      line.text.first.map { " })]".contains($0) } ?? true
      || ["case ", "default:", "else", "catch"].contains { line.text.hasPrefix($0) }
    let isPrefix =
      line.text.hasPrefix("//")
      || (line.text.hasPrefix("@") && withoutAttributes(line.text).isEmpty)
    if isPrefix {
      waiting.append(line)
    } else if isInside, !result.isEmpty, waiting.isEmpty {
      result[result.count - 1].lines.append(line)
    } else {
      result.append((kind(of: line.text), waiting + [line]))
      waiting = []
    }
  }
  return result
}

func source(of block: Block) -> String {
  let all = pieces(block.lines)
  func text(_ kinds: Set<Kind>) -> String {
    all.filter { kinds.contains($0.kind) }.map { piece in
      let code = piece.lines.map { $0.text.replacing("…", with: "") }.joined(separator: "\n")
      return "#sourceLocation(file: \"\(block.file)\", line: \(piece.lines[0].number))\n\(code)\n"
    }.joined()
  }
  var imports = text([.importing])
  if imports.isEmpty {
    let ours = [
      "DaemonLifecycle", "DaemonLifecycleCodable", "DaemonLifecycleFoundation",
      "DaemonLifecycleState", "DaemonLifecycleTesting", "DaemonSystemd", "Glibc", "Testing",
    ]
    let peers = ["DaemonLifecycle", "Glibc", "Logging", "ServiceLifecycle"]
    imports = (block.needsPeers ? peers : ours).map { "import \($0)\n" }.joined()
    if block.file.contains("DaemonLifecycleFoundation") { imports += "import Foundation\n" }
    if block.file.contains("DaemonLifecycleCodable") { imports += "import FoundationEssentials\n" }
  }
  let hasStatements = all.contains { $0.kind == .statement }
  let name = block.needsPeers && block.words.count == 2 ? block.words[1] : "snippet"
  let body =
    hasStatements
    ? text([.type]) + "func \(name)() async throws {\n" + text([.function, .statement]) + "\n}\n"
    : text([.type, .function])
  // A block that imports another one has its names from there.
  let given = imports.contains("@testable") ? "" : "import Given\n"
  return given + imports + body
}

// MARK: - All of them

let folder = CommandLine.arguments[1]
var count = 0
var isRefused = false
for path in CommandLine.arguments.dropFirst(2) {
  var previous: [Line] = []
  for var block in try blocks(in: path) {
    count += 1
    if block.note.hasPrefix("not compiled, since ") { continue }
    if block.note == "continues" { block.lines = previous + block.lines }
    previous = block.lines
    var (name, kind) = (block.name, block.isManifest ? "manifest" : "swift")
    switch block.words.first {
    case nil, "continues": break
    case "module": (name, kind) = (block.words[1], "module")
    case "peers" where block.lines.contains { $0.text.hasPrefix("@main") }:
      (name, kind) = (block.words[1], "program")
    case "peers": kind = "peers"
    default:
      print("\(path):\(block.lines[0].number): there is no note \"\(block.note)\"")
      exit(1)
    }
    let text =
      block.isManifest ? block.lines.map(\.text).joined(separator: "\n") : source(of: block)
    try text.write(toFile: "\(folder)/\(name).\(kind)", atomically: false, encoding: .utf8)
  }
}
print("\(count) examples in documents and doc comments")
if isRefused { exit(1) }
