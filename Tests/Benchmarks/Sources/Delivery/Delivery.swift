// SPDX-License-Identifier: Apache-2.0
import CBench
import Counting
import Glibc

/// One way of telling N observers, timed: `Delivery CONTESTANT N`. Says `METRIC NANOSECONDS` on descriptor 3, in
/// nanoseconds an observer, the median of its repetitions.
@main struct Delivery {
  static func main() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]),
      let contestant = contestants[arguments[1]]
    else {
      print("Delivery CONTESTANT N; contestants: \(contestants.keys.sorted())")
      exit(64)
    }
    // Off the main actor, as a daemon's work is.
    await Task.detached { await contestant(count) }.value
  }

  private static let contestants: [String: @Sendable (Int) async -> Void] = [
    "classes": { await subject(count: $0, of: ClassObserver.self, concurrent: false) },
    "actors": { await subject(count: $0, of: ActorObserver.self, concurrent: false) },
    "classes-concurrent": { await subject(count: $0, of: ClassObserver.self, concurrent: true) },
    "actors-concurrent": { await subject(count: $0, of: ActorObserver.self, concurrent: true) },
    "closures": { await closures(count: $0) },
    "loop-classes": { await loop(count: $0, of: ClassObserver.self) },
    "loop-actors": { await loop(count: $0, of: ActorObserver.self) },
    "group-classes": { await loop(count: $0, of: ClassObserver.self, groupAll) },
    "group-actors": { await loop(count: $0, of: ActorObserver.self, groupAll) },
    "blocks": { await blocks(count: $0) },
    "async-message": { await asyncMessages(count: $0) },
    "registry": { await registry(count: $0) },
    "registry-blocks": { await registryOfBlocks(count: $0) },
  ]
}

/// Says how long `body` takes an observer: after a warm-up, the median of so many repetitions that they are a
/// few hundred thousand calls, or of what three seconds are enough for.
func report(count: Int, _ body: () async -> Void) async {
  let repetitions = max(7, min(1000, 300_000 / count))
  for _ in 0..<max(1, repetitions / 10) { await body() }
  var times: [Double] = []
  let end = bench_now() + 3_000_000_000
  while times.count < repetitions, times.count < 3 || bench_now() < end {
    let began = bench_now()
    await body()
    times.append(Double(bench_now() - began) / Double(count))
  }
  say("time", median(times))
}

func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }

func say(_ metric: String, _ nanoseconds: Double) {
  var line = "\(metric) \(nanoseconds)\n"
  line.withUTF8 { _ = write(Int32(BENCH_CHANNEL), $0.baseAddress, $0.count) }
}
