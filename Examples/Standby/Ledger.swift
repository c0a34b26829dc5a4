// SPDX-License-Identifier: Apache-2.0
/// The file that both instances share: numbered lines, which each of them reads and one of them writes.
final class Ledger {
  private let path: String
  private let descriptor: Int32
  /// How much of it has been read: up to the end of a line.
  private var offset: off_t = 0

  init(_ path: String) throws(SystemError) {
    self.path = path
    descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw SystemError("open \(path)") }
  }

  deinit { close(descriptor) }

  /// Whole lines that are new since the last call, some 64 kB of them; none at the end. Half a line is left for later.
  func newLines() throws(SystemError) -> [String] {
    let bytes = try unread(isPart: true)
    let end = bytes.lastIndex(of: Self.newLine).map { $0 + 1 } ?? 0
    offset += off_t(end)
    return bytes[..<end].split(separator: Self.newLine, omittingEmptySubsequences: false)
      .dropLast().map { String(decoding: $0, as: UTF8.self) }
  }

  private static let newLine = UInt8(ascii: "\n")

  /// - Parameter isPart: Whether a line is enough.
  private func unread(isPart: Bool = false) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = pread(descriptor, &buffer, buffer.count, offset + off_t(bytes.count))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("read \(path)") }
      bytes += buffer.prefix(count)
      // The end is not read twice if that can be avoided: half a line may be removed meanwhile, and another one begin
      // there.
      if isPart && bytes.contains(Self.newLine) || count < buffer.count { return bytes }
    }
  }

  // MARK: For the one that writes

  /// Takes the right to write; false while the other has it. The kernel releases it when its holder dies.
  func lock() throws(SystemError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    guard errno == EWOULDBLOCK else { throw SystemError("lock \(path)") }
    return false
  }

  func unlock() { flock(descriptor, LOCK_UN) }

  /// The time of the day, for lines that are written on several machines.
  static var milliseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }

  /// What a writer that was killed, or had no room, has left of a line; empty as a rule.
  func halfLine() throws(SystemError) -> String { String(decoding: try unread(), as: UTF8.self) }

  func dropHalfLine() throws(SystemError) {
    guard ftruncate(descriptor, offset) == 0 else { throw SystemError("truncate \(path)") }
  }

  func append(_ line: String) throws(SystemError) {
    let bytes = Array((line + "\n").utf8)
    let count = write(descriptor, bytes, bytes.count)
    // A part of it is half a line, for the next one that writes to remove.
    guard count == bytes.count else {
      throw SystemError("append to \(path)", code: count < 0 ? errno : ENOSPC)
    }
  }
}

/// A system call failed: `Could not open /no/file: No such file or directory.`
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
