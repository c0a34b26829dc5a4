// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleTesting
import DaemonSystemd
import Synchronization
import Testing

@testable import DaemonLifecycle

/// A restart or a stop: what a hook of the termination is told of it.
@Suite struct UnitJobTests {
  /// Asks in its hook.
  final class Asker: TerminationObserver {
    private let lifecycle: any LifecycleObservable
    private let heard = Mutex<UnitJob??>(nil)
    var answer: UnitJob?? { heard.withLock { $0 } }
    init(_ lifecycle: any LifecycleObservable) {
      self.lifecycle = lifecycle
      lifecycle.addObserver(self)
    }
    func willTerminate(_: WillTerminate) async {
      let job = await lifecycle.unitJob()
      heard.withLock { $0 = .some(job) }
    }
  }

  /// A subject whose core is given.
  final class Subject: LifecycleObservable {
    let _core: LifecycleCore
    init(_ core: LifecycleCore) { _core = core }
  }

  private func asked(
    _ stopDelay: Duration = .zero
  ) async throws -> (core: LifecycleCore, time: VirtualTime, asker: Asker) {
    let time = VirtualTime()
    let core = LifecycleCore(
      configuration: LifecycleConfiguration(stopDelay: stopDelay, logging: .off), virtualTime: time,
      harness: Harness(), asksForUnitJob: true, exitProcess: { _ in })
    let asker = Asker(Subject(core))
    _ = await core.launch()
    core.receive(LifecycleEvent(.terminate))
    if stopDelay > .zero {
      // There is none yet: the drain began with a signal.
      core.unitJobIsKnown(nil)
      await core.advance(by: stopDelay)
    }
    try await core.waitUntilSleeping(1)
    return (core, time, asker)
  }

  @Test(arguments: [UnitJob.restart, nil]) func aHookWaitsForTheAnswer(job: UnitJob?) async throws {
    let (core, _, asker) = try await asked()
    #expect(asker.answer == nil)
    core.unitJobIsKnown(job)
    try await core.untilIdle()
    #expect(asker.answer == .some(job))
    #expect(core.pending.isEmpty)
    core.close()
  }

  @Test func whatBeginsDuringTheDrainIsHeardToo() async throws {
    let (core, _, asker) = try await asked(.seconds(5))
    core.unitJobIsKnown(.restart)
    try await core.untilIdle()
    #expect(asker.answer == .some(.restart))
    core.close()
  }

  @Test func itDoesNotWaitForEver() async throws {
    let (core, _, asker) = try await asked()
    await core.advance(by: .seconds(1))
    try await core.untilIdle()
    #expect(asker.answer == .some(nil))
    #expect(core.state.withLock { $0.unitJobWaiters.isEmpty }, "nothing of it is left")
    core.close()
  }

  @Test func aMockSaysWhatItIsTold() async throws {
    let mock = MockLifecycleSubject()
    let asker = Asker(mock)
    #expect(await mock.unitJob() == nil)
    mock.setUnitJob(.restart)
    #expect(await mock.unitJob() == nil, "nothing ends yet")
    mock.setUnitJob(nil)
    mock.setUnitJob(.stop)
    try await mock.send(.sigterm)
    #expect(asker.answer == .some(.stop))
    #expect(UnitJob.stop.isRestart == false && UnitJob.restart.isRestart)
  }
}
