// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The time of a mock's core, which passes only when a test advances it.
final class VirtualTime: Sendable {
  private let nanoseconds = Atomic<Int64>(0)
  var now: MonotonicTime { MonotonicTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
  func advance(to time: MonotonicTime) {
    nanoseconds.max(time.nanoseconds, ordering: .acquiringAndReleasing)
  }
}
