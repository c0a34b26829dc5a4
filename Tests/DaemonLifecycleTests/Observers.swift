import CLinux
import Synchronization

@testable import DaemonLifecycle

/// What several observers did, in order.
final class Log: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
  func clear() { lines.withLock { $0 = [] } }
}

/// Logs what it hears, with its name.
final class Listener: LaunchObserver, ForegroundObserver, BackgroundObserver, StateObserver,
  ReloadObserver, SuspendObserver, ResumeObserver, PressureObserver, TerminationObserver
{
  let name: String
  let log: Log
  init(_ name: String, _ log: Log) {
    self.name = name
    self.log = log
  }

  func didFinishLaunching(_ notification: DidFinishLaunching) { log.add("\(name) launch") }
  func willEnterForeground(_ notification: WillEnterForeground) { log.add("\(name) foreground") }
  func didEnterBackground(_ notification: DidEnterBackground) { log.add("\(name) background") }
  func shouldSaveState(_ notification: ShouldSaveState) { log.add("\(name) save") }
  func shouldReload(_ notification: ShouldReload) { log.add("\(name) reload") }
  func willSuspend(_ notification: WillSuspend) { log.add("\(name) suspend") }
  func didResume(_ notification: DidResume) { log.add("\(name) resume") }
  func didReceivePressure(_ notification: DidReceivePressure) {
    log.add("\(name) pressure \(notification.resource)")
  }
  func willTerminate(_ notification: WillTerminate) { log.add("\(name) terminate") }
}

/// Runs a closure for each of the hooks that most tests need.
final class Scripted: ForegroundObserver, BackgroundObserver, StateObserver, TerminationObserver {
  let background: @Sendable (DidEnterBackground) async throws -> Void
  let save: @Sendable (ShouldSaveState) async throws -> Void
  let foreground: @Sendable (WillEnterForeground) async throws -> Void
  init(
    foreground: @escaping @Sendable (WillEnterForeground) async throws -> Void = { _ in },
    background: @escaping @Sendable (DidEnterBackground) async throws -> Void = { _ in },
    save: @escaping @Sendable (ShouldSaveState) async throws -> Void = { _ in }
  ) {
    self.foreground = foreground
    self.background = background
    self.save = save
  }
  func willEnterForeground(_ notification: WillEnterForeground) async throws {
    try await foreground(notification)
  }
  func didEnterBackground(_ notification: DidEnterBackground) async throws {
    try await background(notification)
  }
  func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await save(notification)
  }
  func willTerminate(_ notification: WillTerminate) {}
}

/// Opens once; what waits for it waits without a thread, and does not mind being cancelled.
final class Gate: Sendable {
  private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>(
    (false, []))

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// An actor that can be kept busy, so that its hook has to wait for it.
actor BusyActor: BackgroundObserver {
  private let log: Log
  let isIn = Gate()
  init(_ log: Log) { self.log = log }

  /// Holds the actor, and its thread, until the condition is met.
  func occupy(until isOver: @Sendable () -> Bool) {
    isIn.open()
    while !isOver() { usleep(1000) }
  }

  func run(_ body: @Sendable () -> Void) { body() }
  func didEnterBackground(_ notification: DidEnterBackground) { log.add("began") }
}

struct Failure: Error {}

/// For the order in which a test expects them.
extension LifecyclePhase: Comparable {}
