// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// Where a core takes the time from: the kernel, or a test.
enum TimeSource: Sendable {
  case monotonic
  case virtual(VirtualTime)

  var now: MonotonicTime {
    switch self {
    case .monotonic: .now()
    case .virtual(let time): time.now
    }
  }

  var isMonotonic: Bool { if case .monotonic = self { true } else { false } }
}

/// Time that passes only when it is told to.
final class VirtualTime: Sendable {
  private let nanoseconds = Atomic<Int64>(0)
  /// Grows while a test moves the clock.
  let steps = Atomic<UInt64>(0)
  var now: MonotonicTime { MonotonicTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
  func advance(to time: MonotonicTime) {
    nanoseconds.max(time.nanoseconds, ordering: .acquiringAndReleasing)
  }
}
