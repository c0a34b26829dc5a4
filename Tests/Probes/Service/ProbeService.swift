// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A service for the tests on a real systemd: the first argument names what it is.
@main struct ProbeService {
  static func main() async throws {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let kind = arguments.isEmpty ? "" : arguments.removeFirst()
    switch kind {
    case "lifecycle": try await LifecycleProbe(Options(arguments)).run()
    case "load":
      LoadProbe(Options(Array(arguments.dropFirst())), port: UInt16(arguments.first ?? "") ?? 0)
        .run()
    case "crowd":
      let numbers = arguments.compactMap { Int($0) } + [0, 0]
      crowd(
        port: UInt16(numbers[0]), connections: numbers[1],
        arguments.dropFirst(2).joined(separator: " "))
    case "flood": try await FloodProbe(Options(arguments)).run()
    default:
      say("usage: ProbeService lifecycle|load|crowd|flood …")
      exit(64)
    }
  }
}

/// One write(2) a line, so that lines of several threads do not mix.
func say(_ line: String) {
  var text = line + "\n"
  text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}

/// `--name`, `--name=value`, `--name=hook:value`.
struct Options {
  private let values: [String: [String]]

  init(_ arguments: [String]) {
    var values: [String: [String]] = [:]
    for argument in arguments {
      let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
      values[parts[0], default: []].append(parts.count > 1 ? parts[1] : "")
    }
    self.values = values
  }

  func has(_ name: String) -> Bool { values[name] != nil }
  func all(_ name: String) -> [String] { values[name] ?? [] }
  func number(_ name: String) -> Int { values[name]?.last.flatMap { Int($0) } ?? 0 }
  subscript(name: String) -> String? { values[name]?.last }

  /// Of `--name=hook:value`, the value for one hook.
  func value(_ name: String, for hook: String) -> String? {
    all(name).first { $0 == hook || $0.hasPrefix(hook + ":") }
      .map { String($0.dropFirst(hook.count + 1)) }
  }

  func seconds(_ name: String) -> Duration? {
    self[name].flatMap { Double($0) }.map { .seconds($0) }
  }
}
