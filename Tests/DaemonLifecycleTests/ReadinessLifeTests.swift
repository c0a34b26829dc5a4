// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonLifecycleTesting
import TestSupport
import Testing

/// When the readiness file is there, and when it is not.
@Suite("Readiness: when", .timeLimit(.minutes(5))) struct ReadinessLifeTests {
  private let folder: Folder
  private let log = Log()
  private var path: String { folder.path("ready") }
  private var isReady: Bool { exists(path) }

  init() throws { folder = try Folder() }

  private func mock(_ state: LifecycleState = .foreground) -> MockLifecycleSubject {
    MockLifecycleSubject(
      state: state,
      configuration: .init(
        logging: .off, interfaces: .standard + [.readinessFile(path)]))
  }

  /// Notes in each hook whether a probe would find the daemon ready.
  private func observe(_ mock: MockLifecycleSubject) -> LifecycleToken {
    mock.observeAll { [log, path] notification in
      log.add("\(type(of: notification)) \(exists(path) ? "ready" : "not ready")")
    }
  }

  @Test func aWholeLife() async throws {
    let mock = mock(.launching)
    let token = observe(mock)
    #expect(!isReady)
    try await mock.launch()
    #expect(isReady)
    try await mock.send(.sighup)
    #expect(isReady)
    try await mock.send(.sigusr1)
    #expect(!isReady)
    try await mock.send(.sigusr2)
    #expect(isReady)
    try await mock.send(.sleep)
    #expect(!isReady)
    try await mock.send(.wakeUp)
    #expect(isReady)
    try await mock.send(.sigterm)
    #expect(!isReady && folder.names == [])
    #expect(
      log.all == [
        "DidFinishLaunching not ready", "WillEnterForeground not ready",
        "ShouldSaveState ready", "ShouldReload ready",
        "DidEnterBackground not ready", "ShouldSaveState not ready",
        "WillEnterForeground not ready",
        "DidEnterBackground not ready", "ShouldSaveState not ready", "WillSleep not ready",
        "DidWakeUp not ready", "WillEnterForeground not ready",
        "DidEnterBackground not ready", "ShouldSaveState not ready", "WillTerminate not ready",
      ])
    withExtendedLifetime(token) {}
  }

  @Test func aLaunchThatFailsNeverIs() async throws {
    let mock = mock(.launching)
    mock.on(DidFinishLaunching.self) { _ in throw Failure() }
    let watch = observe(mock)
    try await mock.launch()
    try await mock.waitUntilSettled()
    #expect(mock.exitResult?.exitStatus == 70)
    #expect(!log.all.contains { $0.hasSuffix(" ready") && !$0.hasSuffix("not ready") })
    #expect(!isReady)
    withExtendedLifetime(watch) {}
  }

  // MARK: At once

  @Test(arguments: [UnixSignal.sigusr1, .sigterm])
  func itGoesWhileAnotherHookStillRuns(signal: UnixSignal) async throws {
    let mock = mock()
    let gate = Gate()
    mock.on(ShouldReload.self) { [log] _ in
      log.add("reloading")
      await gate.wait()
    }
    mock.inject(.sighup)
    await mock.advance(by: .zero)
    #expect(log.all == ["reloading"] && isReady)
    mock.inject(signal)
    #expect(!isReady, "before the reload has ended")
    gate.open()
    try await mock.waitUntilSettled()
    #expect(!isReady)
  }

  @Test func aPauseThatIsTakenBackBringsItBack() async throws {
    let mock = mock()
    let gate = Gate()
    mock.on(ShouldReload.self) { _ in await gate.wait() }
    let watch = observe(mock)
    mock.inject(.sighup)
    await mock.advance(by: .zero)
    for _ in 1...3 {
      mock.inject(.sigusr1)
      #expect(!isReady)
      mock.inject(.sigusr2)
      #expect(isReady)
    }
    gate.open()
    try await mock.waitUntilSettled()
    #expect(isReady)
    #expect(!log.all.contains { $0.hasPrefix("DidEnterBackground") })
    withExtendedLifetime(watch) {}
  }

  @Test func aSubjectThatGoesAwayTakesItAlong() async throws {
    var mock: MockLifecycleSubject? = mock()
    try await mock?.waitUntilInForeground()
    #expect(isReady)
    mock = nil
    #expect(mock == nil && !isReady)
  }

  /// Threads that pause and resume at the same time: what the file says in the end is what is so.
  @Test func itAgreesWithTheStateUnderContention() async throws {
    let mock = mock()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let reason = BackgroundReason("\(number)")
          for _ in 0..<100 {
            mock.pause(for: reason)
            #expect(!exists(path), "its reason is there")
            mock.resume(for: reason)
          }
        }
      }
    }
    try await mock.waitUntilSettled()
    #expect(mock.state == .foreground && isReady)
    mock.pause(for: .operator)
    try await mock.waitUntilSettled()
    #expect(!isReady)
  }
}
