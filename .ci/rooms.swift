// SPDX-License-Identifier: Apache-2.0
// The rooms of a module and the arrows between them: swift .ci/rooms.swift
//
// Fails when a file of `Sources/DaemonLifecycle` names a type of a room above its own, and when two source files have
// one name. A room is a folder. The picture in CONTRIBUTING.md has them from the top to the bottom.
import Foundation

let picture = (try? String(contentsOfFile: "CONTRIBUTING.md", encoding: .utf8)) ?? ""
let order =
  picture.matches(of: #/(?m)^      ([A-Z][A-Za-z]+)\/ /#).map { String($0.1) }.reversed()
  as [String]
let root = "Sources/DaemonLifecycle"

func swiftFiles(in folder: String) -> [String] {
  let names = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
  // The documentation has code too, that of readers.
  return names.filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }.sorted().map {
    "\(folder)/\($0)"
  }
}

/// The code without comments and strings, line by line.
func code(of file: String) -> [Substring] {
  let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
  return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
    line.replacing(#/"(\\.|[^"\\])*"/#, with: "\"\"").replacing(#/\/\/.*/#, with: "")[...]
  }
}

struct File {
  let path: String
  let room: String
  let lines: [Substring]
}

var files: [File] = []
for path in swiftFiles(in: root) {
  let parts = path.dropFirst(root.count + 1).split(separator: "/")
  files.append(
    File(path: path, room: parts.count > 1 ? String(parts[0]) : "", lines: code(of: path)))
}

var complaints: [String] = []
for file in files where !order.contains(file.room) {
  complaints.append(
    "\(file.path): \(file.room.isEmpty ? "no room" : file.room) is not one of \(order.joined(separator: ", "))"
  )
}

for room in order where !files.contains(where: { $0.room == room }) {
  complaints.append("CONTRIBUTING.md has a room \(room), which is empty")
}

/// The room of each type that is declared at the top level.
var home: [Substring: String] = [:]
for file in files {
  for line in file.lines {
    let declaration =
      #/(?:(?:public|package|private|fileprivate|final|indirect|@[A-Za-z_]+) )*(?:struct|class|enum|protocol|actor|typealias) (?<name>[A-Za-z_]+)/#
    if let match = line.prefixMatch(of: declaration), !line.hasPrefix("private "),
      !line.hasPrefix("fileprivate ")
    {
      home[match.output.name] = file.room
    }
  }
}

for file in files {
  guard let rank = order.firstIndex(of: file.room) else { continue }
  for (number, line) in file.lines.enumerated() {
    for word in line.matches(of: #/[A-Za-z_][A-Za-z_0-9]*/#) {
      guard let room = home[word.output], let other = order.firstIndex(of: room), other > rank
      else { continue }
      complaints.append(
        "\(file.path):\(number + 1): \(file.room) uses \(word.output) of \(room), which is above it"
      )
    }
  }
}

var places: [Substring: [String]] = [:]
for path in swiftFiles(in: "Sources") {
  places[path.split(separator: "/").last ?? "", default: []].append(path)
}
for (name, paths) in places where paths.count > 1 {
  complaints.append("\(paths.joined(separator: " and ")) have one name, \(name)")
}

for complaint in complaints.sorted() { print(complaint) }
print(
  "\(files.count) files in \(order.count) rooms, \(home.count) types, \(complaints.count) complaints"
)
exit(complaints.isEmpty && !home.isEmpty ? 0 : 1)
