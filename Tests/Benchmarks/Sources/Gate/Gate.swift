// SPDX-License-Identifier: Apache-2.0
import Foundation
import Measuring

/// Counts what does not depend on how busy the machine is, and fails when something is more than was measured, and more
/// than 5 % more: `Gate DIRECTORY BOUNDS`.
@main struct Gate {
  static func main() {
    do {
      let arguments = CommandLine.arguments
      guard arguments.count == 3 else { throw HarnessError("see Tests/Benchmarks/gate") }
      let counts = try Counts(directory: arguments[1])
      let bounds = try Bound.read(arguments[2])
      let failures = try bounds.filter { try !holds($0, counts) }
      guard failures.isEmpty else {
        throw HarnessError(
          "The gate is shut: \(failures.map(\.name).joined(separator: ", ")). Make it cheaper again, or change the bound"
            + " in Tests/Benchmarks/bounds and say why.")
      }
      print("All \(bounds.count) bounds hold.")
    } catch {
      print("\(error)")
      exit(1)
    }
  }

  /// What is over its bound is counted twice more: where hooks share what they take, a busy machine adds to it.
  private static func holds(_ bound: Bound, _ counts: Counts) throws -> Bool {
    var value = try counts.value(of: bound.name)
    for _ in 0..<2 where value > bound.most {
      value = min(value, try counts.value(of: bound.name))
    }
    let isMet = value <= bound.most
    let verdict = !isMet ? "FAIL" : value > bound.measured ? "note" : "ok  "
    let text =
      "\(short(value)) \(bound.unit), once \(short(bound.measured)), at most \(short(bound.most))"
    print("\(verdict) \(bound.name): \(text)\(isMet ? "" : ". \(bound.why)")")
    return isMet
  }
}

/// A line of the file of bounds: `name measured unit why`.
struct Bound {
  let name: String
  let measured: Double
  let unit: String
  let why: String
  var most: Double { measured * 1.05 }

  static func read(_ path: String) throws -> [Bound] {
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    return try lines.filter { !$0.hasPrefix("#") }.map { line in
      let words = line.split(separator: " ", maxSplits: 3)
      guard words.count == 4, let value = Double(words[1]) else {
        throw HarnessError("\(path): \"\(line)\" is not `name measured unit why`.")
      }
      return Bound(
        name: String(words[0]), measured: value, unit: String(words[2]),
        why: words[3].trimmingCharacters(in: .whitespaces))
    }
  }
}
