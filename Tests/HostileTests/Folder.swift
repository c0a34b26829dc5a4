// SPDX-License-Identifier: Apache-2.0
import Glibc
import TestSupport

/// A folder of a test's own, which goes with it.
final class Folder {
  let path: String

  init() throws {
    var template = Array("/tmp/hostile-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp") }
    path = String(
      decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  deinit { system("rm -rf \(path)") }

  /// What is in a file of at most 64 KiB.
  func text(_ name: String) throws -> String {
    let file = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw TestFailure("open \(name)") }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 65536)
    return String(decoding: buffer.prefix(max(0, read(file, &buffer, buffer.count))), as: UTF8.self)
  }
}
