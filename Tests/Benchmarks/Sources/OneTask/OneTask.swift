// SPDX-License-Identifier: Apache-2.0
import CBench
import Dispatch

/// A Swift program that has had one task on Swift's pool, and does nothing for ever: what any use of Swift
/// concurrency costs.
@main struct OneTask {
  static func main() {
    Task.detached { bench_ready() }
    dispatchMain()
  }
}
