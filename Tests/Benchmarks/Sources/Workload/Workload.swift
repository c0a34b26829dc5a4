// SPDX-License-Identifier: Apache-2.0
import CBench
import Counting
import DaemonLifecycle
import Glibc
import Synchronization

/// A fixed amount of work, to be counted rather than timed: `Workload KIND DELIVERIES`, to a hundred observers; or
/// `Workload signal SIGNALS`, to one; or `Workload wakeup|pause SIGNALS`, each to an idle daemon, where `pause` has all of
/// a SIGUSR1 counted; or the beginning and the end of a daemon: `Workload task|start|stop 1`; or `Workload adding|limits
/// OBSERVERS`, to one that was launched; or what must not cost the more, the more there are: `Workload reasons REASONS`,
/// `Workload overtaken OBSERVERS`, `Workload refused POSTS`.
/// Says the allocations of these deliveries on descriptor 3 where they are counted.
@main struct Workload {
  static let observers = 100

  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let deliveries = Int(arguments[2]) else { exit(64) }
    // Off the main actor, as a daemon's work is.
    Task.detached {
      switch arguments[1] {
      case "classes": await hooks(of: ClassObserver.self, concurrent: false, deliveries)
      case "actors": await hooks(of: ActorObserver.self, concurrent: false, deliveries)
      case "concurrent": await hooks(of: ClassObserver.self, concurrent: true, deliveries)
      case "closures": await closures(deliveries)
      case "signal": await signals(deliveries)
      case "wakeup": await signals(deliveries, pause: 20_000)
      case "pause": await signals(deliveries, pause: 20_000, countsAll: true)
      // What `start` is measured against: one task on Swift's pool, which is this one.
      case "task": break
      case "start": await start()
      case "stop": await stop()
      case "adding": await adding(deliveries) { ClassObserver() }
      case "limits": await adding(deliveries, timeout: .seconds(5)) { Idler() }
      case "reasons": await reasons(deliveries)
      case "overtaken": await overtakenSave(of: deliveries)
      case "refused": await refusedPosts(deliveries)
      default: exit(64)
      }
      exit(0)
    }
    // An asynchronous `main` would end in Dispatch's sigsuspend(2), which valgrind 3.19 does not survive.
    while true { pause() }
  }

  private static func hooks<O: CountingObserver>(
    of _: O.Type, concurrent: Bool, _ deliveries: Int
  ) async {
    let lifecycle = await startedSubject()
    let all = (0..<observers).map { _ in O() }
    let phase = LifecyclePhase(order: 0, isConcurrent: concurrent)
    for observer in all { lifecycle.addObserver(observer, phase: phase) }
    var saves = Saves(lifecycle)
    await count(deliveries) { await saves.next() }
    await checkCounts(all)
  }

  private static func closures(_ deliveries: Int) async {
    let lifecycle = await startedSubject()
    let counter = Counter()
    let tokens = (0..<observers).map { _ in
      lifecycle.observe(Ping.self) { _ in counter.value.add(1, ordering: .relaxed) }
    }
    await count(deliveries) { await lifecycle.post(Ping()) }
    withExtendedLifetime(tokens) {}
  }

  /// From the handler to the end of the delivery, for one actor: what an idle daemon does for a signal.
  ///
  /// - Parameter pause: Microseconds before each signal, in which the last delivery ends.
  private static func signals(_ count: Int, pause: UInt32 = 0, countsAll: Bool = false) async {
    var configuration = LifecycleConfiguration(hookTimeout: .seconds(3600))
    configuration.interfaces = .plain
    // Without the line for an operator, which comes after it.
    configuration.logging = .problems
    let lifecycle = LifecycleSubject(configuration: configuration)
    let waiter = WaitingActor()
    lifecycle.addObserver(waiter)
    await launch(lifecycle)
    for index in 0..<count + 10 {
      let isPause = index.isMultiple(of: 2)
      if pause > 0 { usleep(pause) }
      if countsAll, index >= 10, isPause { bench_count_all(true) }
      kill(getpid(), isPause ? SIGUSR1 : SIGUSR2)
      waiter.wait()
      if countsAll {
        usleep(pause)
        bench_count_all(false)
      }
    }
    guard bench_counts_to_hook() != 0, bench_counts_allocations() != 0 else { return }
    say("allocations \(bench_allocations_to_hook())")
  }

  /// A daemon as `Minimal` is: with everything that is on by default, and a stop timeout, so that the counts are the same in
  /// a container and elsewhere: there it would say where it is.
  private static func daemon() -> LifecycleSubject {
    let lifecycle = LifecycleSubject(
      configuration: LifecycleConfiguration(stopTimeout: .seconds(90)))
    lifecycle.addObserver(Idler())
    return lifecycle
  }

  private static func start() async { await run { exit(0) } }

  private static func stop() async { await run { kill(getpid(), SIGTERM) } }

  /// Runs a daemon, and does something once it is in the foreground.
  private static func run(_ action: @escaping @Sendable () -> Void) async {
    let lifecycle = daemon()
    let token = lifecycle.observe(WillEnterForeground.self) { _ in action() }
    do {
      let result = try await lifecycle.run()
      check(result.exitStatus == 0, "\(result)")
    } catch {
      check(false, "\(error)")
    }
    withExtendedLifetime(token) { exit(0) }
  }

  /// Observers that have nothing to catch up with, added one by one.
  private static func adding(
    _ count: Int, timeout: Duration? = nil, _ make: () -> some LifecycleObserver
  ) async {
    let lifecycle = await startedSubject()
    let all = (0..<count).map { _ in make() }
    for observer in all { lifecycle.addObserver(observer, timeout: timeout) }
    // What the start leaves to other threads, 190,000 instructions, ends in each of the programs that are compared.
    usleep(300_000)
    withExtendedLifetime(lifecycle) { exit(0) }
  }

  /// Reasons for the background, added one by one.
  private static func reasons(_ count: Int) async {
    let lifecycle = await startedSubject()
    for number in 0..<count { lifecycle.pause(for: BackgroundReason("unit \(number)")) }
    usleep(300_000)
    withExtendedLifetime(lifecycle) { exit(0) }
  }

  /// A stop that finds a save under way, of observers that it has to pause and save.
  private static func overtakenSave(of count: Int) async {
    let lifecycle = daemon()
    for _ in 0..<count { lifecycle.addObserver(Crowd()) }
    lifecycle.addObserver(Crowd { lifecycle.terminate() })
    let run = await launch(lifecycle)
    lifecycle.saveState()
    _ = await run.result
    exit(0)
  }

  /// A stop that refuses posts which wait, each of which a hundred observers would receive.
  private static func refusedPosts(_ count: Int) async {
    let lifecycle = daemon()
    let tokens = (0..<observers).map { _ in lifecycle.observe(Ping.self) { _ in } }
    let run = await launch(lifecycle)
    let hold = lifecycle.holdDeliveries()
    let posts = (0..<count).map { _ in Task { await lifecycle.post(Ping()) } }
    usleep(300_000)
    lifecycle.terminate()
    for post in posts {
      check(await post.value.entries.count == observers, "a post was not refused")
    }
    _ = await run.result
    withExtendedLifetime((tokens, hold)) { exit(0) }
  }

  /// After a few deliveries, which fill caches and pools.
  private static func count(
    _ deliveries: Int, _ deliver: () async -> LifecycleReport
  ) async {
    for _ in 0..<10 { _ = await deliver() }
    let before = allocations()
    for _ in 0..<deliveries { _ = await deliver() }
    guard let before, let after = allocations() else { return }
    say("allocations \(after - before)")
  }

  private static func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { _ = write(Int32(BENCH_CHANNEL), $0.baseAddress, $0.count) }
  }

  private static func allocations() -> UInt64? {
    bench_counts_allocations() != 0 ? bench_allocations() : nil
  }
}

/// Is paused and saves; the first save does something.
final class Crowd: BackgroundObserver, SaveObserver {
  private let action: @Sendable () -> Void
  init(_ action: @escaping @Sendable () -> Void = {}) { self.action = action }
  func didEnterBackground(_ notification: DidEnterBackground) {}
  func shouldSaveState(_ notification: ShouldSaveState) { action() }
}

/// Has two hooks, neither of which is called by a launch.
actor Idler: BackgroundObserver, HealthObserver {
  func didEnterBackground(_ notification: DidEnterBackground) async {}
  func checkHealth(_ notification: CheckHealth) async {}
}

/// Says of each signal that it has come.
actor WaitingActor: BackgroundObserver, ForegroundObserver {
  // Its own thread waits, and a hook signals: what semaphores are for.
  nonisolated(unsafe) private let semaphore: UnsafeMutablePointer<sem_t>

  init() {
    semaphore = .allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
  }

  nonisolated func wait() { while sem_wait(semaphore) != 0 {} }
  func didEnterBackground(_ notification: DidEnterBackground) {
    bench_note_hook()
    sem_post(semaphore)
  }
  func willEnterForeground(_ notification: WillEnterForeground) {
    bench_note_hook()
    if notification.cause.signal != nil { sem_post(semaphore) }
  }
}
