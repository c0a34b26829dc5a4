// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The source of a core's time: the kernel, or a test.
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

/// Virtual time, which passes only when a test advances it.
final class VirtualTime: Sendable {
  private let nanoseconds = Atomic<Int64>(0)
  /// A number that grows each time a test moves the clock.
  let steps = Atomic<UInt64>(0)
  var now: MonotonicTime { MonotonicTime(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
  func advance(to time: MonotonicTime) {
    nanoseconds.max(time.nanoseconds, ordering: .acquiringAndReleasing)
  }
}
