import Foundation

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
      let content = line.trimmingCharacters(in: .whitespaces)
      if content.isEmpty || content.hasPrefix("#") { continue }
      let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2 else {
        throw SettingsError("line \(index + 1): \"\(content)\" is no setting; write key = value")
      }
      switch parts[0] {
      case "prefix":
        guard parts[1].utf8.count <= 64 else {
          throw SettingsError("line \(index + 1): a prefix has at most 64 bytes")
        }
        prefix = parts[1]
      case "line-limit":
        guard let limit = Int(parts[1]), (1...1 << 20).contains(limit) else {
          throw SettingsError("line \(index + 1): line-limit is a number from 1 to \(1 << 20)")
        }
        lineLimit = limit
      default:
        throw SettingsError(
          "line \(index + 1): there is no setting \"\(parts[0])\", only prefix and line-limit")
      }
    }
  }
}

/// A setting that makes no sense; the text says where and what to write.
struct SettingsError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
