// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// What the poller does.
struct Settings: Equatable, Sendable {
  var interval = Duration.seconds(1)
  var source = PollSource(path: "/proc/loadavg")
}

/// The settings of one place, the command line or a file; each may be missing.
struct PartialSettings: Equatable, Sendable {
  var interval: Duration?
  var source: PollSource?

  mutating func set(_ key: String, to value: String) throws(SettingsError) {
    switch key {
    case "interval": interval = try Self.interval(value)
    case "source": source = try PollSource(value)
    default: throw SettingsError("there is no setting \"\(key)\", only interval and source")
    }
  }

  private static func interval(_ text: String) throws(SettingsError) -> Duration {
    // A thousand polls a second are enough, and a year is far from what a Duration can't hold.
    guard let seconds = Double(text), seconds >= 0.001, seconds <= 31_536_000 else {
      throw SettingsError(
        "interval \"\(text)\" is not a number of seconds from 0.001 (to a year); "
          + "write 0.5, for instance")
    }
    return .seconds(seconds)
  }
}

/// A setting that makes no sense. The text explains what to write instead.
struct SettingsError: ExitStatusError, CustomStringConvertible {
  var exitStatus: Int32 { 78 }  // EX_CONFIG
  let description: String
  init(_ description: String) { self.description = description }
}

/// The places of settings, read at start and at every reload.
struct Configuration: Sendable {
  let file: String?
  /// The command line's settings: they take precedence over the file's.
  let overrides: PartialSettings

  func load() throws(SettingsError) -> Settings {
    let fromFile = try file.map { path throws(SettingsError) in try Self.parse(path) }
    let defaults = Settings()
    return Settings(
      interval: overrides.interval ?? fromFile?.interval ?? defaults.interval,
      source: overrides.source ?? fromFile?.source ?? defaults.source)
  }

  private static let mostBytes = 1 << 20

  private static func parse(_ path: String) throws(SettingsError) -> PartialSettings {
    let bytes: [UInt8]
    do { bytes = try Descriptor.beginning(of: path, limit: mostBytes + 1) } catch {
      throw SettingsError("\(error)")
    }
    guard bytes.count <= mostBytes else {
      throw SettingsError("\(path) is larger than 1 MiB: it is no file of settings.")
    }
    var settings = PartialSettings()
    let lines = String(decoding: bytes, as: UTF8.self)
      .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      do { try parse(line, into: &settings) } catch {
        throw SettingsError("\(path), line \(index + 1): \(error).")
      }
    }
    return settings
  }

  private static func parse(
    _ line: Substring, into settings: inout PartialSettings
  ) throws(SettingsError) {
    // A number would end at the NUL; the other stands for what could not be decoded.
    guard !line.unicodeScalars.contains(where: { $0 == "\0" || $0 == "\u{FFFD}" }) else {
      throw SettingsError("this is not valid UTF-8")
    }
    let content = withoutComment(line).trimmed
    if content.isEmpty { return }
    let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw SettingsError("\"\(content)\" is no setting; write key = value")
    }
    let (key, value) = (parts[0], parts[1])
    try settings.set(key.trimmed, to: value.trimmed)
  }

  /// A # within a word is part of it: paths may have them.
  private static func withoutComment(_ line: Substring) -> Substring {
    var previous: Character = " "
    for index in line.indices {
      if line[index] == "#", previous.isWhitespace { return line[..<index] }
      previous = line[index]
    }
    return line
  }
}
