// SPDX-License-Identifier: Apache-2.0
// Writes each Swift example of documents and doc comments into a file of its own, ready to be compiled:
// swift .ci/snippets.swift FOLDER FILE.md… FILE.swift…
//
// An example is a block fenced as `swift`. In doc comments, indented code and fences without a language are refused, since
// neither is highlighted. One without imports gets those of all products, the C library and Testing, and, in what belongs
// to the Foundation product, Foundation, to the Codable one FoundationEssentials. From its first statement on it becomes
// the body of a function. Names that the text takes for granted are in `given.swift`. An ellipsis stands for code that is
// left out, and is dropped.
//
// A comment that readers don't see, on the line before a block, says what else holds for it:
//
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

/// The text of each line, in a source that of its doc comments; the others are nil.
func markdown(_ path: String, isSource: Bool) throws -> [Line?] {
  let text = try String(contentsOfFile: path, encoding: .utf8)
  return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map {
    let comment = $1.drop { $0 == " " }
    if isSource, !comment.hasPrefix("///") { return nil }
    let text = isSource ? comment.dropFirst(comment.hasPrefix("/// ") ? 4 : 3) : $1
    return Line(number: $0 + 1, text: String(text))
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

  let isSource = path.hasSuffix(".swift")
  for line in try markdown(path, isSource: isSource) {
    guard let line else {
      close()
      (fence, lastText) = (nil, "")
      continue
    }
    let content = line.text.drop { $0 == " " }
    if content.hasPrefix("```") {
      close()
      fence = fence == nil ? (content.dropFirst(3), line.text.count - content.count) : nil
      if let fence, fence.language.isEmpty, isSource {
        refuse(line, of: path, "a fence without a language")
      }
      if fence?.language == "swift" { open = Block(file: path, lines: [], note: note(lastText)) }
      lastText = ""
    } else if let fence {
      open?.lines.append(Line(number: line.number, text: String(line.text.dropFirst(fence.indent))))
    } else {
      // After a blank line that is code to Markdown.
      let isIndented = line.text.hasPrefix("    ") && (lastText.isEmpty || !note(lastText).isEmpty)
      if isSource, isIndented { refuse(line, of: path, "indented code: fence it as ```swift") }
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

/// Whether a line is code that can't stand at the top level of a file.
func isStatement(_ line: String) -> Bool {
  if line.first.map({ " })]".contains($0) }) ?? true { return false }
  let code = line.replacing(#/@\w+(\([^)]*\))? ?/#, with: "")
  if code.isEmpty || ["//", "#if", "#else", "#endif"].contains(where: code.hasPrefix) {
    return false
  }
  let modifiers: Set = ["public", "private", "final", "nonisolated", "indirect"]
  let word = code.split { !$0.isLetter }.first { !modifiers.contains(String($0)) } ?? ""
  return ![
    "struct", "class", "actor", "enum", "protocol", "extension", "typealias", "func",
  ].contains(word)
}

func source(of block: Block) -> String {
  let isImport = { (line: Line) in line.text.contains(#/^(@testable )?import /#) }
  var imports = block.lines.filter(isImport).map { $0.text + "\n" }.joined()
  // A block that imports another one has its names from there.
  let given = imports.contains("@testable") ? "" : "import Given\n"
  if imports.isEmpty {
    let ours = [
      "DaemonLifecycle", "DaemonLifecycleCodable", "DaemonLifecycleExploring",
      "DaemonLifecycleFiles", "DaemonLifecycleFoundation", "DaemonLifecycleLease",
      "DaemonLifecycleState", "DaemonLifecycleTesting", "DaemonLifecycleTraces", "DaemonSystemd",
      "Glibc", "Testing",
    ]
    let peers = ["DaemonLifecycle", "Glibc", "Logging", "ServiceLifecycle"]
    imports = (block.needsPeers ? peers : ours).map { "import \($0)\n" }.joined()
    if block.file.contains("DaemonLifecycleFoundation") { imports += "import Foundation\n" }
    if block.file.contains("DaemonLifecycleCodable") { imports += "import FoundationEssentials\n" }
  }
  let lines = block.lines.filter { !isImport($0) }
  let firstStatement = lines.firstIndex { isStatement($0.text) } ?? lines.endIndex
  let name = block.needsPeers && block.words.count == 2 ? block.words[1] : "snippet"
  var code = given + imports
  for (index, line) in lines.enumerated() {
    let waits = lines.contains { $0.text.hasPrefix("LifecycleSubject.runAndExit") } ? "" : "async "
    if index == firstStatement { code += "func \(name)() \(waits)throws {\n" }
    if index == 0 || index == firstStatement || line.number != lines[index - 1].number + 1 {
      code += "#sourceLocation(file: \"\(block.file)\", line: \(line.number))\n"
    }
    code += line.text.replacing("…", with: "") + "\n"
  }
  return firstStatement < lines.endIndex ? code + "}\n" : code
}

// MARK: - All of them

let folder = CommandLine.arguments[1]
var count = 0
var isRefused = false
for path in CommandLine.arguments.dropFirst(2) {
  for block in try blocks(in: path) {
    count += 1
    if block.note.hasPrefix("not compiled, since ") { continue }
    var (name, kind) = (block.name, block.isManifest ? "manifest" : "swift")
    switch block.words.first {
    case nil: break
    case "module": (name, kind) = (block.words[1], "module")
    case "peers" where block.lines.contains { $0.text.hasPrefix("@main") }:
      (name, kind) = (block.words[1], "program")
    case "peers": kind = "peers"
    default: refuse(block.lines[0], of: path, "there is no note \"\(block.note)\"")
    }
    let text =
      block.isManifest ? block.lines.map(\.text).joined(separator: "\n") : source(of: block)
    try text.write(toFile: "\(folder)/\(name).\(kind)", atomically: false, encoding: .utf8)
  }
}
print("\(count) examples in documents and doc comments")
if isRefused { exit(1) }
