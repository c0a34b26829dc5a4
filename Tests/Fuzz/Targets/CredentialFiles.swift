// SPDX-License-Identifier: Apache-2.0
import CFuzz
import CLinux

@testable import DaemonSystemd

extension FuzzTarget {
  /// How the file is made, the line it is named with, and its content: what is read is what is there, under a name that
  /// is a name.
  static let credentials = FuzzTarget(name: "credentials") { input in
    let kind = input.below(8)
    let name = input.lineText()
    var content = input.all()
    if kind == 1 { content = Array(repeating: 7, count: Credentials.maximumSize + 1) }
    let credentials =
      kind == 2 ? try Credentials(environment(folder, kind)) : Credentials(directory: folder)
    let isName =
      (1...255).contains(name.utf8.count) && name != "." && name != ".."
      && name.utf8.allSatisfy { $0 >= 32 && $0 < 127 && $0 != 47 && $0 != 58 }
    let path = "\(folder)/\(name)"
    if isName, kind != 3 { make(path, kind, content) }
    defer { if isName { remove(path) } }
    checkNone(name, isName)
    let names = try credentials.names
    require(names == (isName && kind != 3 ? [name] : []), "\(names) are there")
    do throws(SystemdError) {
      let read = try credentials.data(named: name)
      require(isName, "\(name) is no name")
      require(read == (kind == 3 ? nil : content), "\(read as Any) was read")
    } catch {
      requireSentence(error)
      require(!isName || kind == 1 || kind == 4 || kind == 5, "\(error) though it is there")
    }
    do throws(SystemdError) {
      guard let text = try credentials.string(named: name) else { return }
      require(Array(text.utf8) == content, "\(text) was read")
    } catch { requireSentence(error) }
  }

  private static let folder = String(cString: fuzz_folder())

  private static func environment(_ folder: String, _ kind: Int) -> ServiceEnvironment {
    ServiceEnvironment(["CREDENTIALS_DIRECTORY": folder], processID: 1, processInode: nil)
  }

  /// A service without credentials, and one whose directory is not there.
  private static func checkNone(_ name: String, _ isName: Bool) {
    for directory in [nil, "\(folder)/none"] {
      let none = Credentials(directory: directory)
      do throws(SystemdError) {
        require(try none.data(named: name) == nil && isName, "\(name) is there")
      } catch { require(!isName, "\(error)") }
      require((try? none.names) == (directory == nil ? [] : nil), "names are there")
    }
  }

  private static func make(_ path: String, _ kind: Int, _ content: [UInt8]) {
    // 4: what opening would wait for; 5: a link in a circle. From 6 on it is a file like any other.
    if kind == 4 { return require(mkfifo(path, 0o600) == 0, "mkfifo") }
    if kind == 5 { return require(symlink(path, path) == 0, "symlink") }
    fuzz_write(path, content, content.count)
  }
}
