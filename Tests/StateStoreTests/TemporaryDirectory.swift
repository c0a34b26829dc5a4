// SPDX-License-Identifier: Apache-2.0
import CLinux
import Foundation

/// A directory of a test's own, with files in it and no directories deeper than one.
final class TemporaryDirectory: Sendable {
  let path: String

  init(in parent: String? = nil) throws {
    let parent = parent ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/state-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp in \(parent)") }
    path = String(
      decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  deinit { Self.remove(path) }

  private static func remove(_ path: String) {
    if unlink(path) == 0 { return }
    for name in names(path) { remove("\(path)/\(name)") }
    rmdir(path)
  }

  static func names(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  var names: [String] { Self.names(path) }

  /// The size of a file; 0 when there is none.
  func size(of name: String) throws -> Int {
    var found = stat()
    if stat("\(path)/\(name)", &found) == 0 { return Int(found.st_size) }
    guard clinux_errno() == ENOENT else { throw TestFailure("stat \(name)") }
    return 0
  }
}

struct TestFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
