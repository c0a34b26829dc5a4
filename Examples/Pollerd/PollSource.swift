// SPDX-License-Identifier: Apache-2.0
/// The file that is polled.
struct PollSource: Equatable, Sendable {
  let path: String

  /// The first line of what is there now, without white space around it.
  ///
  /// Never waits for what has no data yet, and never takes in more than the beginning: it may be a FIFO, or have no end.
  func read() throws(SystemError) -> String {
    let bytes = try Descriptor.beginning(of: path, limit: Self.limit)
    return String(decoding: bytes, as: UTF8.self).prefix { !$0.isNewline }.trimmed
  }

  /// How many bytes are read, so that what is printed is a short line.
  private static let limit = 2000
}

extension PollSource {
  /// As it is written in the settings.
  init(_ text: String) throws(SettingsError) {
    // `http://host/x` is no file, though it could be the name of one: `./http://host/x` is.
    guard !text.isEmpty, text.prefix(while: { $0 != "/" }).last != ":" else {
      throw SettingsError("source \"\(text)\" is no file's path; write /proc/loadavg, for instance")
    }
    path = text
  }
}
