// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Returns the processor's time that a thread takes for something; its own, since others have the processor now and then.
package func threadTime(of work: () -> Void) -> Duration {
  func now() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
  let before = now()
  work()
  return now() - before
}
