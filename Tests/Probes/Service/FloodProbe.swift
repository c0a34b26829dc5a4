// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonLifecycleState
import DaemonSystemd
import Glibc
import Synchronization

/// A daemon whose clients take every descriptor: SIGRTMIN+1 lets them in, SIGRTMIN+2 sends them away.
///
///     --state=DIRECTORY   saves the number of the save
///     --ready=FILE  --alive=FILE
///     --greedy            clients also take each descriptor that becomes free, as fast as they can
///     --gate=FILE         the end waits until the file is there
///     --preserve          at the end, has the service manager keep bytes and waits until it has them
final class FloodProbe: SaveObserver, ReloadObserver, TerminationObserver {
  struct Flood: CustomNotification {}
  struct Ebb: CustomNotification {}

  private let lifecycle: LifecycleSubject
  private let store: StateStore
  private let preservation: Preservation?
  private let clients: Clients
  private let gate: String?
  private let saves = Atomic<Int>(0)

  init(_ options: Options) throws {
    var configuration = LifecycleConfiguration()
    configuration.signals[.realTime(1)!] = .post(Flood())
    configuration.signals[.realTime(2)!] = .post(Ebb())
    if let ready = options["--ready"] { configuration.interfaces.append(.readinessFile(ready)) }
    if let alive = options["--alive"] {
      configuration.interfaces.append(.livenessFile(alive, within: .seconds(1)))
    }
    lifecycle = LifecycleSubject(configuration: configuration)
    store = try StateStore(directory: options["--state"] ?? ".")
    _ = try store.load()
    preservation = options.has("--preserve") ? try Preservation() : nil
    gate = options["--gate"]
    clients = Clients(isGreedy: options.has("--greedy"))
  }

  func run() async throws {
    lifecycle.addObserver(self)
    let tokens = [
      lifecycle.observe(Flood.self) { [clients] _ in
        clients.come()
        say("flooded")
      },
      lifecycle.observe(Ebb.self) { [clients] _ in
        clients.go()
        say("ebbed")
      },
      lifecycle.observe(WillEnterForeground.self) { _ in say("foreground") },
      lifecycle.observe(DidEnterBackground.self) { _ in say("background") },
    ]
    let result = try await lifecycle.run()
    withExtendedLifetime(tokens) {}
    for entry in result.report.entries { say("entry \(entry)") }
    say("exit \(result.exitStatus)")
    exit(result.exitStatus)
  }

  func shouldSaveState(_ notification: ShouldSaveState) throws {
    let number = saves.add(1, ordering: .relaxed).newValue
    try store.save(Array("\(number)".utf8))
    say("saved \(number)")
  }

  func shouldReload(_ notification: ShouldReload) { say("reloaded") }

  func willTerminate(_ notification: WillTerminate) throws {
    say("terminating")
    if let gate { while access(gate, F_OK) != 0 { usleep(5000) } }
    guard let preservation else { return }
    try preservation.forget(named: "client")
    try preservation.preserve(Array("kept".utf8), named: "state")
    try preservation.barrier()
    say("preserved")
  }
}

/// Who takes descriptors. Not on Swift's pool: when that has more work than threads, Dispatch looks into /proc once a
/// second, and ends the process if it has no descriptor for that.
private final class Clients: Sendable {
  private let isGreedy: Bool
  private let taken = Mutex<[Int32]>([])
  private let isHere = Atomic<Bool>(false)

  init(isGreedy: Bool) { self.isGreedy = isGreedy }

  /// Returns when no descriptor is left.
  func come() {
    isHere.store(true, ordering: .releasing)
    takeAll()
    guard isGreedy else { return }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { raw in
        // Retained below, and released exactly once, here.
        let clients = Unmanaged<Clients>.fromOpaque(raw!).takeRetainedValue()
        while clients.takeAll() { sched_yield() }
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  /// False when they have gone.
  @discardableResult private func takeAll() -> Bool {
    taken.withLock { taken in
      guard isHere.load(ordering: .acquiring) else { return false }
      while case let number = open("/dev/null", O_RDONLY | O_CLOEXEC), number >= 0 {
        taken.append(number)
      }
      return true
    }
  }

  func go() {
    isHere.store(false, ordering: .releasing)
    taken.withLock { taken in
      for number in taken { close(number) }
      taken = []
    }
  }
}
