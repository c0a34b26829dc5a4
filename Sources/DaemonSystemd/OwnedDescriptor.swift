// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A file descriptor with one owner, who closes it by letting go of it.
///
/// ```swift
/// guard let listener = passed.take(named: "http") else { return }
/// serve(listener.rawValue)
/// ```
///
/// It can't be copied, so nothing is closed twice or used after it was closed; hand it on with `consume`,
/// or give the number away with `release()`.
public struct OwnedDescriptor: ~Copyable, Sendable {
  /// The number; valid as long as this value lives.
  public let rawValue: Int32

  /// Takes over an open descriptor, which nobody else closes from now on.
  public init(owning rawValue: Int32) { self.rawValue = rawValue }

  deinit { _ = close(rawValue) }

  /// Gives the number away: whoever takes it must close it.
  public consuming func release() -> Int32 {
    let number = rawValue
    discard self
    return number
  }

  /// A second descriptor for the same open file, close-on-exec.
  ///
  /// - Throws: `system` when there is no descriptor left.
  public func duplicate() throws(SystemdError) -> OwnedDescriptor {
    let number = clinux_duplicate(rawValue, 3)
    guard number >= 0 else {
      throw .system("duplicate file descriptor \(rawValue)", errno: clinux_errno())
    }
    return OwnedDescriptor(owning: number)
  }

  /// Everything up to its end, of files that have no size to ask for; `nil` when that is more than `limit` bytes.
  func bytesToEnd(limit: Int, purpose: String) throws(SystemdError) -> [UInt8]? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while bytes.count <= limit {
      let count = read(rawValue, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count < 0, clinux_errno() == EINTR { continue }
      guard count > 0 else { throw .system(purpose, errno: clinux_errno()) }
      bytes.append(contentsOf: chunk[..<count])
    }
    return nil
  }
}
