import CBench
import Dispatch

/// A Swift program that does nothing for ever, and could use Dispatch: what any Swift daemon costs. With `task` it
/// has had one task on Swift's pool before, as every daemon has.
@main struct Empty {
  static func main() {
    if CommandLine.arguments.count > 1 {
      Task.detached { bench_ready() }
    } else {
      bench_ready()
    }
    dispatchMain()
  }
}
