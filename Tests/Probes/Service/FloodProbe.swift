import DaemonLifecycle
import Glibc
import Synchronization
import Systemd

/// A daemon whose clients take every descriptor: SIGRTMIN+1 lets them in, SIGRTMIN+2 sends them away.
///
///     --state=DIRECTORY   saves the number of the save
///     --ready=FILE  --alive=FILE
///     --greedy            clients also take each descriptor that becomes free, as fast as they can
///     --preserve          at the end, has the service manager keep bytes and waits until it has them
final class FloodProbe: StateObserver, ReloadObserver, TerminationObserver {
  struct Flood: LifecycleNotification {}
  struct Ebb: LifecycleNotification {}

  private let lifecycle: LifecycleSubject
  private let store: StateStore
  private let preservation: Preservation?
  private let clients: Clients
  private let saves = Atomic<Int>(0)

  init(_ options: Options) throws {
    var configuration = LifecycleConfiguration()
    configuration.signals[.realTime(1)!] = .post(Flood())
    configuration.signals[.realTime(2)!] = .post(Ebb())
    configuration.readinessFile = options["--ready"].map { ReadinessFile($0) }
    configuration.livenessFile = options["--alive"].map { LivenessFile($0, period: .seconds(1)) }
    lifecycle = LifecycleSubject(configuration)
    store = try StateStore(directory: options["--state"] ?? ".")
    _ = try store.load()
    preservation = options.has("--preserve") ? try Preservation() : nil
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
    ]
    let result = try await lifecycle.run()
    withExtendedLifetime(tokens) {}
    for entry in result.report.entries { say("entry \(entry)") }
    say("exit \(result.code)")
    exit(result.code)
  }

  func shouldSaveState(_ notification: ShouldSaveState) throws {
    let number = saves.add(1, ordering: .relaxed).newValue
    try store.save(Array("\(number)".utf8))
    say("saved \(number)")
  }

  func shouldReload(_ notification: ShouldReload) { say("reloaded") }

  func willTerminate(_ notification: WillTerminate) throws {
    guard let preservation else { return }
    try preservation.forget(named: "client")
    try preservation.preserve(Array("kept".utf8), named: "state")
    try preservation.barrier()
    say("preserved")
  }
}

/// Who takes descriptors.
private final class Clients: Sendable {
  private let isGreedy: Bool
  private let taken = Mutex<[Int32]>([])
  private let isHere = Atomic<Bool>(false)

  init(isGreedy: Bool) { self.isGreedy = isGreedy }

  /// Returns when no descriptor is left.
  func come() {
    taken.withLock { taken in
      while let next = Self.another() { taken.append(next) }
    }
    guard isGreedy else { return }
    isHere.store(true, ordering: .releasing)
    Task.detached { [self] in
      while isHere.load(ordering: .acquiring) {
        taken.withLock { taken in
          guard isHere.load(ordering: .acquiring) else { return }
          while let next = Self.another() { taken.append(next) }
        }
        await Task.yield()
      }
    }
  }

  func go() {
    isHere.store(false, ordering: .releasing)
    taken.withLock { taken in
      for number in taken { close(number) }
      taken = []
    }
  }

  private static func another() -> Int32? {
    let number = open("/dev/null", O_RDONLY | O_CLOEXEC)
    return number < 0 ? nil : number
  }
}
