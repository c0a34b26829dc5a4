// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Has every hook, and notes the types that it receives.
private final class EveryHook: EveryHookObserver {
  let log = Log()
  func receive(_ notification: some LifecycleNotification) { log.add("\(type(of: notification))") }
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
    #expect(observer.log.all == ["\(kind.row.type)"])
    #expect(NotificationKind(kind.row.type) == kind)
  }

  @Test func wordsAreWithinATimeline() {
    for kind in NotificationKind.allCases {
      #expect(!kind.row.done.isEmpty && kind.row.done.count < 20)
      #expect(!kind.row.noun.isEmpty && kind.row.noun.count < 20)
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
    observer.log.clear()
    let report = try await mock.send(.sigalrm)
    #expect(report.problems.isEmpty)
    let row = try #require(request.transition).row
    #expect(observer.log.all == row.steps.compactMap(\.type).map { "\($0)" })
    #expect(row.messageID != nil)
  }
}
