// SPDX-License-Identifier: Apache-2.0
/// A file descriptor: the system calls that the daemon makes, with sentences for errors.
struct Descriptor: Sendable {
  static let standardOutput = Descriptor(number: 1)
  static let standardError = Descriptor(number: 2)

  let number: Int32

  /// Started with a closed stdout, the next file opened would be number 1, and get our lines.
  static func openMissingStandardOnes() {
    for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }
  }

  /// The first bytes of a file. Never waits for what has no data yet, such as a FIFO.
  static func beginning(
    of path: String, limit: Int = 1 << 20
  ) throws(SystemError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("read \(path)") }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: min(limit, 16384))
    while bytes.count < limit {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      // A FIFO's writer has no more to say for now.
      if count < 0, errno == EAGAIN { break }
      guard count >= 0 else { throw SystemError("read \(path)") }
      if count == 0 { break }
      bytes += buffer.prefix(count)
    }
    return Array(bytes.prefix(limit))
  }

  func writeAll(_ bytes: [UInt8]) throws(SystemError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(number, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("write") }
      rest.removeFirst(count)
    }
  }
}

/// A system call failed: `Could not read /no/file: No such file or directory.`
struct SystemError: Error, CustomStringConvertible {
  let purpose: String
  let code: Int32

  /// The code is that of the call that has just failed.
  init(_ purpose: String, code: Int32 = errno) {
    self.purpose = purpose
    self.code = code
  }

  var description: String { "Could not \(purpose): \(String(cString: strerror(code)))." }
}
