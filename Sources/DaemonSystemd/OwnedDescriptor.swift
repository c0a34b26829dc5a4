// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A file descriptor with one owner. It is closed when the value goes out of scope.
///
/// ```swift
/// let http = try preservation.preserved(named: "http", as: .listeningStream)
/// guard let http else { return }
/// serve(http.rawValue)
/// ```
///
/// It can't be copied, so a descriptor is not closed twice or used after it was closed. Pass it on with `consume`, or
/// take the number out with ``release()``.
public struct OwnedDescriptor: ~Copyable, Sendable {
  /// The descriptor's number; valid as long as this value exists.
  public let rawValue: Int32

  /// Takes over an open descriptor, which no other code may close any more.
  public init(owning rawValue: Int32) { self.rawValue = rawValue }

  deinit { _ = close(rawValue) }

  /// Returns the number without closing it: the caller must close it.
  public consuming func release() -> Int32 {
    let number = rawValue
    discard self
    return number
  }
}
