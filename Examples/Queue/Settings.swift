// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle

/// The file with the connection string, whose password others could read in the environment or on the command line.
struct Settings: Sendable {
  let file: String
  let isValid: @Sendable (String) -> Bool

  /// What is in the file now.
  func connectionString() throws(SettingsError) -> String {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let descriptor = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    let count = descriptor < 0 ? -1 : read(descriptor, &bytes, bytes.count)
    let code = errno
    close(descriptor)
    guard count >= 0 else {
      throw SettingsError("Could not read \(file): \(String(cString: strerror(code))).")
    }
    // A password that is not UTF-8 would become another one.
    let text = String(validating: bytes[..<count], as: UTF8.self) ?? ""
    let lines = text.split(whereSeparator: \.isNewline)
    guard count < bytes.count, lines.count == 1, !lines[0].contains("\0"), isValid("\(lines[0])")
    else { throw SettingsError("\(file) has no connection string that PostgreSQL understands.") }
    return String(lines[0])
  }
}

struct SettingsError: ExitStatusError, CustomStringConvertible {
  let description: String
  var exitStatus: Int32 { 78 }

  init(_ description: String) { self.description = description }
}
