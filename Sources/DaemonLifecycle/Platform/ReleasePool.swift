// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Where a thread puts references to users' objects that it must not release, as under the core's lock, or while it listens: a
/// deinit is user code.
///
/// What has such a reference for the core (an observer, a hook, a work's body, a thrown error, what was posted) is a class
/// whose deinit gives it to `release`. So it does not matter where the last reference to that is dropped, and nobody has to
/// remember it there.
enum ReleasePool {
  /// What is to be released, by whoever lets go of this.
  ///
  /// `@unchecked`: the thread that has added to it gives it away, and has no other reference.
  final class Released: @unchecked Sendable {
    fileprivate(set) var values: [any Sendable] = []
  }

  /// Keeps a value for what is no class.
  final class Kept: Sendable {
    private let value: any Sendable
    init(_ value: any Sendable) { self.value = value }
    deinit { ReleasePool.release(value) }
  }

  /// From now on this thread releases nothing. Closed as often as it was opened.
  static func open() { clinux_release_pool().pointee.depth += 1 }

  /// Returns what was kept from being released since the first `open`.
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
