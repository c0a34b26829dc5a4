// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Dispatch
import Glibc
import Synchronization

/// Says what it hears, and misbehaves as its options say.
///
///     --slow=HOOK:SECONDS    the hook takes so long; it does not mind being cancelled
///     --stuck=HOOK           the hook never ends
///     --gate=HOOK:FILE       the hook ends when the file is there
///     --fail=HOOK            the hook throws
///     --extend=HOOK:SECONDS  asks for more time first
///     --config=FILE          a reload copies the file to FILE.used, or is rejected while it says "bad"
///     --sick=FILE            checkHealth throws while the file exists
///     --state=FILE           a save appends a line, on disk when the hook returns
///     --watch=UNIT  --empty-map  --deadline=SECONDS  --delay=SECONDS
///     --part=SECONDS         a part of it fails once, and is well again after so long
///     --thief                its body takes SIGHUP and SIGTERM with a DispatchSource each
///     --awake=FILE           500 pieces of work keep the machine awake until the file is there
///     --needs=FILE           a task is ready once the file is there
///
/// SIGRTMIN+1 blocks every thread of Swift's pool, SIGRTMIN+2 the main actor, for good.
final class LifecycleProbe: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver,
  ReloadObserver, SleepObserver, WakeUpObserver, PressureObserver, HealthObserver,
  TerminationObserver
{
  struct BlockPool: CustomNotification {}
  struct BlockMain: CustomNotification {}

  private let options: Options
  private let lifecycle: LifecycleSubject

  init(_ options: Options) {
    self.options = options
    var configuration = LifecycleConfiguration()
    configuration.signals[.realTime(1)!] = .post(BlockPool())
    configuration.signals[.realTime(2)!] = .post(BlockMain())
    if options.has("--empty-map") { configuration.signals = [.sigterm: .terminate] }
    if let deadline = options.seconds("--deadline") { configuration.hookTimeout = deadline }
    if let delay = options.seconds("--delay") { configuration.stopDelay = delay }
    for unit in options.all("--watch") {
      configuration.interfaces.append(.pausing(whileInactive: unit))
    }
    lifecycle = LifecycleSubject(configuration: configuration)
  }

  func run() async throws {
    lifecycle.addObserver(self)
    let tokens = [
      lifecycle.observe(BlockPool.self) { _ in
        for _ in 0..<256 { Task.detached { while true { pause() } } }
        say("pool blocked")
      },
      lifecycle.observe(BlockMain.self) { _ in
        Task { @MainActor in
          say("main blocked")
          while true { pause() }
        }
      },
    ]
    let result = try await runParts()
    withExtendedLifetime(tokens) {}
    for entry in result.report.entries { say("entry \(entry)") }
    say("exit \(result.exitStatus)")
    exit(result.exitStatus)
  }

  private func runParts() async throws -> LifecycleExit {
    let lifecycle = lifecycle
    if options.has("--thief") {
      lifecycle.addTask {
        let sources = [SIGHUP, SIGTERM].map { DispatchSource.makeSignalSource(signal: $0) }
        for source in sources {
          // What came before it was called is one call.
          source.setEventHandler { for _ in 0..<source.data { say("theirs") } }
          source.activate()
        }
        defer { withExtendedLifetime(sources) {} }
        try await lifecycle.clock.sleep(for: .seconds(86_400))
      }
    }
    if let file = options["--needs"] {
      lifecycle.addTask(
        name: "database",
        restarting: .backoff(maximumDelay: .seconds(1), maximumFailures: nil),
        readyWithin: .seconds(60), mayReturn: true
      ) { round in
        if access(file, F_OK) != 0 { throw Rejection(description: "no answer") }
        round.reportReady()
      }
    }
    if let file = options["--awake"] {
      lifecycle.addTask(name: "backup", mayReturn: true) { round in
        try await withThrowingDiscardingTaskGroup { group in
          for number in 1...500 {
            group.addTask {
              try await round.keepingAwake(because: "writes a backup") {
                if number == 500 { say("awake") }
                while access(file, F_OK) != 0 {
                  try await lifecycle.clock.sleep(for: .milliseconds(20))
                }
              }
            }
          }
        }
        say("not awake any more")
      }
    }
    if let period = options.seconds("--part") {
      let hasFailed = Atomic(false)
      lifecycle.addForeground(
        name: "part", restarting: .backoff(initialDelay: .milliseconds(10), within: period)
      ) {
        if !hasFailed.exchange(true, ordering: .relaxed) {
          throw Rejection(description: "the part fails")
        }
        try await lifecycle.clock.sleep(for: .seconds(86_400))
      }
    }
    return try await lifecycle.run()
  }

  // MARK: Hooks

  private func act(_ hook: String, _ context: LifecycleContext) async throws {
    say("\(hook): \(context.cause)")
    if let extra = options.value("--extend", for: hook), let seconds = Double(extra) {
      context.extendDeadline(by: .seconds(seconds))
    }
    if let slow = options.value("--slow", for: hook), let seconds = Double(slow) {
      let end = lifecycle.clock.now.advanced(by: .seconds(seconds))
      while lifecycle.clock.now < end {
        do { try await lifecycle.clock.sleep(until: end) } catch { usleep(10_000) }
      }
    }
    if let gate = options.value("--gate", for: hook) {
      while access(gate, F_OK) != 0 {
        do { try await lifecycle.clock.sleep(for: .milliseconds(20)) } catch { usleep(10_000) }
      }
    }
    if options.value("--fail", for: hook) != nil { throw Rejection(description: "\(hook) fails") }
    if options.value("--stuck", for: hook) != nil {
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
    say("\(hook) done")
  }

  func didFinishLaunching(_ notification: DidFinishLaunching) async throws {
    try await act("launch", notification.context)
  }
  func willEnterForeground(_ notification: WillEnterForeground) async throws {
    try await act("foreground", notification.context)
  }
  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    try await act("background", notification.context)
  }
  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await act("save", notification.context)
    if let file = options["--state"] { append("saved: \(notification.cause)\n", to: file) }
  }
  func shouldReload(_ notification: ShouldReload) async throws {
    try await act("reload", notification.context)
    guard let file = options["--config"] else { return }
    let configuration = text(of: file)
    if configuration.hasPrefix("bad") { throw Rejection(description: "the configuration is bad") }
    append(configuration, to: file + ".new")
    rename(file + ".new", file + ".used")
  }
  func willSleep(_ notification: WillSleep) async throws {
    try await act("suspend", notification.context)
  }
  func didWakeUp(_ notification: DidWakeUp) async throws {
    try await act("resume", notification.context)
  }
  func didReceivePressure(_ notification: DidReceivePressure) async throws {
    try await act("pressure", notification.context)
  }
  func checkHealth(_ notification: CheckHealth) throws {
    if let file = options["--sick"], access(file, F_OK) == 0 {
      throw Rejection(description: "not well")
    }
  }
  func willTerminate(_ notification: WillTerminate) async throws {
    try await act("terminate", notification.context)
    say("job: \(await lifecycle.unitJob().map { "\($0)" } ?? "none")")
  }

  struct Rejection: Error, CustomStringConvertible { let description: String }
}

func append(_ line: String, to path: String) {
  let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  guard file >= 0 else { return say("can't open \(path): \(errno)") }
  var line = line
  line.withUTF8 { _ = write(file, $0.baseAddress, $0.count) }
  fsync(file)
  close(file)
}

func text(of path: String) -> String {
  guard let file = fopen(path, "r") else { return "" }
  defer { fclose(file) }
  var buffer = [UInt8](repeating: 0, count: 4096)
  let count = fread(&buffer, 1, buffer.count, file)
  return String(decoding: buffer.prefix(count), as: UTF8.self)
}
