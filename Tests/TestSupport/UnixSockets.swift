// SPDX-License-Identifier: Apache-2.0
package import Foundation

/// The folder for temporary files, with a slash: by a path that leaves room for a name in a socket's address, which
/// has 108 bytes, however long TMPDIR is. Children may use it while this process lives.
package let shortTemporaryFolder: String = {
  let folder = open(NSTemporaryDirectory(), O_DIRECTORY | O_CLOEXEC)
  precondition(folder >= 0, "\(NSTemporaryDirectory()) can't be opened")
  return "/proc/\(getpid())/fd/\(folder)/"
}()

/// A socket of the given type at a path, to which `attach` binds or connects it.
package func unixSocket(
  _ type: __socket_type, at path: String,
  _ attach: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32
) throws -> Int32 {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
    throw TestFailure("\(path) is too long for a socket's address")
  }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  let number = socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
  let result = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      attach(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
  guard number >= 0, result == 0 else {
    defer { close(number) }
    throw TestFailure("\(path): \(String(cString: strerror(errno)))")
  }
  return number
}
