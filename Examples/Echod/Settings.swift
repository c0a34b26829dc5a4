// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import FoundationEssentials

/// What a reload can change.
struct Settings: Equatable, Sendable {
  /// What each answer begins with.
  var prefix = ""
  /// How many bytes a line may have, without its newline.
  var lineLimit = 64 * 1024
}

extension Settings {
  /// Reads a file of settings; all defaults when there is none.
  static func load(_ path: String?) throws(SettingsError) -> Settings {
    guard let path else { return Settings() }
    guard let data = FileManager.default.contents(atPath: path) else {
      throw SettingsError("\(path) can't be read")
    }
    do { return try Settings(parsing: String(decoding: data, as: UTF8.self)) } catch {
      throw SettingsError("\(path), \(error)")
    }
  }

  /// A line `key = value` each; # begins a comment, blank lines are nothing.
  init(parsing text: String) throws(SettingsError) {
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      // The other stands for what could not be decoded.
      guard !line.unicodeScalars.contains(where: { $0 == "\0" || $0 == "\u{FFFD}" }) else {
        throw SettingsError("line \(index + 1): this is not valid UTF-8")
      }
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map(\.trimmed)
      if parts == [""] || parts[0].hasPrefix("#") { continue }
      if let problem = set(parts[0], parts.dropFirst().first) {
        throw SettingsError("line \(index + 1): \(problem)")
      }
    }
  }

  /// What is wrong with it; `nil`: nothing is.
  private mutating func set(_ key: String, _ value: String?) -> String? {
    guard let value else { return "\"\(key)\" is no setting; write key = value" }
    switch key {
    case "prefix":
      guard value.utf8.count <= 64 else { return "a prefix has at most 64 bytes" }
      prefix = value
    case "line-limit":
      guard let limit = Int(value), (1...1 << 20).contains(limit) else {
        return "line-limit is a number from 1 to \(1 << 20)"
      }
      lineLimit = limit
    default: return "there is no setting \"\(key)\", only prefix and line-limit"
    }
    return nil
  }
}

/// A setting that makes no sense. The text names the place, and what to write instead.
struct SettingsError: ExitStatusError, CustomStringConvertible {
  var exitStatus: Int32 { 78 }  // EX_CONFIG
  let description: String
  init(_ description: String) { self.description = description }
}
