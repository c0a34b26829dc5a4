// SPDX-License-Identifier: Apache-2.0
import CLinux

@testable import DaemonLifecycle

/// A folder of a test's own, with files in it.
final class Folder: Sendable {
  let path: String

  init() {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/lifecycle-XXXXXX".utf8CString)
    mkdtemp(&template)
    path = String(
      decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  deinit {
    for name in names where unlink("\(path)/\(name)") != 0 { rmdir("\(path)/\(name)") }
    rmdir(path)
  }

  func path(_ name: String) -> String { "\(path)/\(name)" }

  var names: [String] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  func write(_ text: String, to name: String) {
    let file = clinux_open_at(AT_FDCWD, path(name), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    _ = clinux_write(file, text, text.utf8.count)
  }

  /// `nil` when there is no such file.
  func text(of name: String) -> String? {
    let file = clinux_open(path(name), O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1000)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}

/// Whether there is anything at the path, as `test -e` says.
func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
