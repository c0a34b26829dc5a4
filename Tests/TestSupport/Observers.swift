// SPDX-License-Identifier: Apache-2.0
package import DaemonLifecycle
import Synchronization

/// What several observers did, in order.
package final class Log: Sendable {
  package init() {}
  private let lines = Mutex<[String]>([])
  package var all: [String] { lines.withLock { $0 } }
  package func add(_ line: String) { lines.withLock { $0.append(line) } }
  package func clear() { lines.withLock { $0 = [] } }
}

/// Logs what it receives, with its name.
package final class Listener: LaunchObserver, ForegroundObserver, BackgroundObserver, SaveObserver,
  ReloadObserver, SleepObserver, WakeUpObserver, PressureObserver, TerminationObserver
{
  package let name: String
  package let log: Log
  package init(_ name: String, _ log: Log) {
    self.name = name
    self.log = log
  }

  package func didFinishLaunching(_ notification: DidFinishLaunching) { log.add("\(name) launch") }
  package func willEnterForeground(_ notification: WillEnterForeground) {
    log.add("\(name) foreground")
  }
  package func didEnterBackground(_ notification: DidEnterBackground) {
    log.add("\(name) background")
  }
  package func shouldSaveState(_ notification: ShouldSaveState) { log.add("\(name) save") }
  package func shouldReload(_ notification: ShouldReload) { log.add("\(name) reload") }
  package func willSleep(_ notification: WillSleep) { log.add("\(name) suspend") }
  package func didWakeUp(_ notification: DidWakeUp) { log.add("\(name) resume") }
  package func didReceivePressure(_ notification: DidReceivePressure) {
    log.add("\(name) pressure")
  }
  package func willTerminate(_ notification: WillTerminate) { log.add("\(name) terminate") }
}

/// Runs a closure for each of the hooks that most tests need.
package final class Scripted: ForegroundObserver, BackgroundObserver, SaveObserver,
  TerminationObserver
{
  package let background: @Sendable (DidEnterBackground) async throws -> Void
  package let save: @Sendable (ShouldSaveState) async throws -> Void
  package let foreground: @Sendable (WillEnterForeground) async throws -> Void
  package init(
    foreground: @escaping @Sendable (WillEnterForeground) async throws -> Void = { _ in },
    background: @escaping @Sendable (DidEnterBackground) async throws -> Void = { _ in },
    save: @escaping @Sendable (ShouldSaveState) async throws -> Void = { _ in }
  ) {
    self.foreground = foreground
    self.background = background
    self.save = save
  }
  package func willEnterForeground(_ notification: WillEnterForeground) async throws {
    try await foreground(notification)
  }
  package func didEnterBackground(_ notification: DidEnterBackground) async throws {
    try await background(notification)
  }
  package func shouldSaveState(_ notification: ShouldSaveState) async throws {
    try await save(notification)
  }
  package func willTerminate(_ notification: WillTerminate) {}
}

/// Opens once; what waits for it waits without a thread, and does not mind being cancelled.
package final class Gate: Sendable {
  package init() {}

  private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>(
    (false, []))

  package func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  /// The body of a hook that ends when it opens.
  package func hold(_ notification: some LifecycleNotification) async { await wait() }

  package func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

extension LifecycleObservable {
  /// Calls the body for each notification of the type until the subject is gone, so that there is no token to keep.
  package func on<N: LifecycleNotification>(
    _ type: N.Type, name: String? = nil, phase: LifecyclePhase = .standard,
    timeout: Duration? = nil, _ body: @escaping @Sendable (N) async throws -> Void
  ) {
    observe(type, owner: self, name: name, phase: phase, timeout: timeout) { _, notification in
      try await body(notification)
    }
  }
}
