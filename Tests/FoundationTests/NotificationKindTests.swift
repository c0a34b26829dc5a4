// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import Synchronization
import Testing

@testable import DaemonLifecycle

/// Has every hook, and notes the types that it receives.
private final class EveryHook: LaunchObserver, ForegroundObserver, BackgroundObserver,
  StateObserver, ReloadObserver, SuspendObserver, ResumeObserver, PressureObserver, HealthObserver,
  TerminationObserver
{
  private let types = Mutex<[any LifecycleNotification.Type]>([])
  private func note(_ notification: some LifecycleNotification) {
    types.withLock { $0.append(type(of: notification)) }
  }
  /// Those received since the last call.
  func take() -> [any LifecycleNotification.Type] {
    types.withLock { types in
      defer { types = [] }
      return types
    }
  }

  func didFinishLaunching(_ notification: DidFinishLaunching) { note(notification) }
  func willEnterForeground(_ notification: WillEnterForeground) { note(notification) }
  func didEnterBackground(_ notification: DidEnterBackground) { note(notification) }
  func shouldSaveState(_ notification: ShouldSaveState) { note(notification) }
  func shouldReload(_ notification: ShouldReload) { note(notification) }
  func willSuspend(_ notification: WillSuspend) { note(notification) }
  func didResume(_ notification: DidResume) { note(notification) }
  func didReceivePressure(_ notification: DidReceivePressure) { note(notification) }
  func checkHealth(_ notification: CheckHealth) { note(notification) }
  func willTerminate(_ notification: WillTerminate) { note(notification) }
}

@Suite struct NotificationKindTests {
  @Test(arguments: NotificationKind.allCases)
  func aRowFindsItsHookAndCallsIt(_ kind: NotificationKind) async throws {
    let observer = EveryHook()
    #expect(type(of: kind.row.make(LifecycleContext())) == kind.row.type)
    let hook = try #require(Hook.search(EveryHook.self, for: kind))
    #expect(hook.notification == ObjectIdentifier(kind.row.type))
    try await hook.call(
      observer, .kind(kind), LifecycleContext())
    #expect(observer.take().map { "\($0)" } == ["\(kind.row.type)"])
    #expect(NotificationKind(kind.row.type) == kind)
  }

  @Test func wordsAreWithinATimeline() {
    for kind in NotificationKind.allCases {
      #expect(!kind.row.done.isEmpty && kind.row.done.count < 20)
      #expect(!kind.row.act.isEmpty && kind.row.act.count < 20)
    }
  }

  @Test(arguments: [LifecycleRequest.saveState, .reload])
  func aRequestDeliversTheStepsOfItsRow(_ request: LifecycleRequest) async throws {
    let observer = EveryHook()
    var signals = SignalMap.standard
    signals[.sigalrm] = request
    let mock = MockLifecycleSubject(configuration: LifecycleConfiguration(signals: signals))
    mock.addObserver(observer)
    try await mock.waitUntilSettled()
    _ = observer.take()
    let report = try await mock.send(.sigalrm)
    #expect(report.problems.isEmpty)
    let row = try #require(request.transition).row
    #expect(observer.take().map { "\($0)" } == row.steps.compactMap(\.type).map { "\($0)" })
    #expect(row.messageID != nil)
  }
}
