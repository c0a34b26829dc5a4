// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// The folders of this package that tests use.
package enum Package {
  /// The checkout.
  package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../..").standardizedFileURL.path

  /// What SwiftPM has built. The tests are part of it.
  package static let products: String = {
    let tests = try! FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return String(tests[..<(tests.lastIndex(of: "/") ?? tests.startIndex)])
  }()

  /// The text of a file of the checkout.
  package static func read(_ path: String) throws -> String {
    try String(contentsOfFile: root + "/" + path, encoding: .utf8)
  }
}

/// The path of an executable of this package.
package func built(_ name: String) -> String { Package.products + "/" + name }

/// Whether there is anything at the path, as `test -e` says.
package func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// Dates a file back, by a day if nothing else is said.
package func age(_ path: String, seconds: Int = 86_400) {
  let times = Array(repeating: timespec(tv_sec: time(nil) - seconds, tv_nsec: 0), count: 2)
  utimensat(AT_FDCWD, path, times, 0)
}

/// Whether a file was not touched since it was dated back.
package func isOld(_ path: String) -> Bool {
  var status = stat()
  return stat(path, &status) == 0 && status.st_mtim.tv_sec < time(nil) - 3600
}

/// A folder of a test's own, which goes with it, or with the process where something is left of the test.
package final class Folder: Sendable {
  package let path: String

  private static let count = Atomic<Int>(0)
  private static let all: String = {
    let path = NSTemporaryDirectory() + "daemon-lifecycle-" + UUID().uuidString
    try! FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    atexit { try? FileManager.default.removeItem(atPath: Folder.all) }
    return path
  }()

  package init() throws {
    path = "\(Self.all)/\(Self.count.add(1, ordering: .relaxed).newValue)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package func path(_ name: String) -> String { "\(path)/\(name)" }

  package func text(_ name: String) throws -> String {
    try String(contentsOfFile: path(name), encoding: .utf8)
  }

  /// Returns the file's path.
  @discardableResult package func write(_ text: String, to name: String) throws -> String {
    try text.write(toFile: path(name), atomically: false, encoding: .utf8)
    return path(name)
  }

  /// The size of a file; 0 when there is none.
  package func size(of name: String) -> Int {
    var found = stat()
    return stat(path(name), &found) == 0 ? Int(found.st_size) : 0
  }

  /// Of what is in it, sorted.
  package var names: [String] { Self.names(path) }

  package static func names(_ path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
}
