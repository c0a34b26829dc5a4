// SPDX-License-Identifier: Apache-2.0
import CBench
import Dispatch

/// A Swift program that does nothing for ever, and could use Dispatch: what any Swift daemon costs. It does not use
/// Swift concurrency, which is then not linked: OneTask does.
@main struct Empty {
  static func main() {
    bench_ready()
    dispatchMain()
  }
}
