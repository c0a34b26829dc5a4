import CBench
import Dispatch

/// A Swift program that does nothing for ever, and could use Dispatch: what any Swift daemon costs.
@main struct Empty {
  static func main() {
    bench_ready()
    dispatchMain()
  }
}
