// SPDX-License-Identifier: Apache-2.0
import CLinux

/// A thread's references to users' objects that it must not release under the core's lock, or while it listens: a
/// deinit is user code.
///
/// Each such reference of the core's (an observer, a hook, a work's body, a thrown error, a post) is held by a class
/// whose deinit passes it to `release`. So the last reference to that class's object may be dropped anywhere, without
/// further care.
enum ReleasePool {
  /// The references to release; dropping this object releases them.
  ///
  /// `@unchecked`: the thread that fills it gives it away, and keeps no reference.
  final class Released: @unchecked Sendable {
    fileprivate(set) var values: [any Sendable] = []
  }

  /// Holds a value for a struct, which has no deinit.
  final class Kept: Sendable {
    private let value: any Sendable
    init(_ value: any Sendable) { self.value = value }
    deinit { ReleasePool.release(value) }
  }

  /// Keeps this thread from releasing users' objects, until `close` was called as often.
  static func open() { clinux_release_pool().pointee.depth += 1 }

  /// Returns the references that were kept since the first `open`, with the last `close`.
  static func close() -> Released? {
    let pool = clinux_release_pool()!
    pool.pointee.depth -= 1
    guard pool.pointee.depth == 0, let released = pool.pointee.released else { return nil }
    pool.pointee.released = nil
    return Unmanaged<Released>.fromOpaque(released).takeRetainedValue()
  }

  /// Keeps a value that may be the last reference to a user's object, if this thread must not release it.
  @inline(__always) static func release(_ value: @autoclosure () -> any Sendable) {
    if clinux_release_pool().pointee.depth > 0 { keep(value()) }
  }

  private static func keep(_ value: any Sendable) {
    let pool = clinux_release_pool()!
    let released = pool.pointee.released ?? Unmanaged.passRetained(Released()).toOpaque()
    pool.pointee.released = released
    Unmanaged<Released>.fromOpaque(released).takeUnretainedValue().values.append(value)
  }
}
